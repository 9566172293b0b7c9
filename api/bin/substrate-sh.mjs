#!/bin/sh
":" // ; for self in "${0%/*}/../lib/node_modules" "${0%/*}/.."; do self=$self/substrate/api/bin/${0##*/}.mjs; [ ! -h "$self" ] && [ "$0" -ef "$self" ] && break; self=; done; [ "$self" ] || self=$(PATH=/usr/bin:/bin:$PATH readlink -f -- "$0") && . "${self%/*}/front.sh"; exit 2
// As the native .build/substrate-sh: the same CLI, which reads the words as sh(1) does.
process.argv.splice(2, 0, "sh");
await import("./substrate.mjs");
