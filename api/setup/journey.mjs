import { spawn } from "node:child_process";
import { constants } from "node:os";
import { CHECKOUT } from "./checkout.mjs";
import { SetUpError } from "./say.mjs";

/**
 * Runs an entry point's work and turns its result into this process's exit code.
 * @param {() => Promise<number>} work
 */
export async function journey(work) {
  try {
    process.exitCode = await work();
  } catch (error) {
    if (!(error instanceof SetUpError)) throw error;
    process.stderr.write(`set-up: ${error.message}\n`);
    process.exitCode = 1;
  }
}

/**
 * Runs a script with this Node, in front of the user.
 * @param {readonly string[]} argv
 * @returns {Promise<number>} its exit code; 128 + n when signal n ended it
 */
export function runNode(argv) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, argv, { cwd: CHECKOUT, stdio: "inherit" });
    // The terminal sends Ctrl-C to both; the child decides what it means.
    const leaveItToTheChild = () => {};
    process.on("SIGINT", leaveItToTheChild);
    child.once("error", reject);
    child.once("exit", (code, signal) => {
      process.off("SIGINT", leaveItToTheChild);
      resolve(signal === null ? (code ?? 1) : 128 + constants.signals[signal]);
    });
  });
}
