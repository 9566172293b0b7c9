#!/usr/bin/env node
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const built = new URL("../../.build/substrate.mjs", import.meta.url);
if (existsSync(built)) {
  await import(built.href);
} else {
  const checkout = fileURLToPath(new URL("../..", import.meta.url));
  process.stderr.write(`Substrate is not built yet. Run 'npm start' in '${checkout.replace(/\/$/, "")}'\n`);
  process.exitCode = 125;
}
