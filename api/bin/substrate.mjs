#!/bin/sh
":" // ; for self in "${0%/*}/../lib/node_modules" "${0%/*}/.."; do self=$self/substrate/api/bin/${0##*/}.mjs; [ ! -h "$self" ] && [ "$0" -ef "$self" ] && break; self=; done; [ "$self" ] || self=$(PATH=/usr/bin:/bin:$PATH readlink -f -- "$0") && . "${self%/*}/front.sh"; exit 2
import { accessSync, constants, existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { isSameTarget, packedFor, targetWords, thisMachine } from "../setup/target.mjs";

/** Words that need no native part. */
const ANYWHERE = ["setup", "help", "version", "--help", "-h", "--version", "-V"];

const word = process.argv[2] ?? "";
if (word === "hook") blockOnFailure();

const built = new URL("../../.build/substrate.mjs", import.meta.url);
const root = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");
const packed = packedFor();
if (!existsSync(built)) {
  refuse(`Substrate is not built yet. Run 'npm start' in '${root}'`);
} else if (packed !== undefined && !isSameTarget(packed, thisMachine()) && !ANYWHERE.includes(word)) {
  refuse(
    `substrate: The native parts in '${root}' are for ${targetWords(packed)}, and this is ${targetWords(thisMachine())}. Run '${mayWrite() ? "" : "sudo "}substrate setup', which builds them`,
  );
} else {
  await import(built.href);
}

/** @param {string} line */
function refuse(line) {
  process.stderr.write(`${line}\n`);
  process.exitCode = 125;
}

function mayWrite() {
  try {
    accessSync(root, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** Makes every failure exit code 2, by which a coding agent blocks a tool: after another code it runs the tool. */
function blockOnFailure() {
  process.on("exit", (code) => {
    if (code !== 0) process.exitCode = 2;
  });
  for (const name of ["SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM"]) process.on(name, () => process.exit(2));
}
