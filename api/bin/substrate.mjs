#!/usr/bin/env node
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

if (process.argv[2] === "hook") blockOnFailure();

const built = new URL("../../.build/substrate.mjs", import.meta.url);
if (existsSync(built)) {
  await import(built.href);
} else {
  const checkout = fileURLToPath(new URL("../..", import.meta.url));
  process.stderr.write(`Substrate is not built yet. Run 'npm start' in '${checkout.replace(/\/$/, "")}'\n`);
  process.exitCode = 125;
}

/** Makes every failure exit code 2, by which a coding agent blocks a tool: after another code it runs the tool. */
function blockOnFailure() {
  process.on("exit", (code) => {
    if (code !== 0) process.exitCode = 2;
  });
  for (const name of ["SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM"]) process.on(name, () => process.exit(2));
}
