#!/usr/bin/env node
// As the native .build/substrate-sh: the same CLI, which reads the words as sh(1) does.
process.argv.splice(2, 0, "sh");
await import("./substrate.mjs");
