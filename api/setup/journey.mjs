import { spawn } from "node:child_process";
import { constants } from "node:os";
import { CHECKOUT } from "./checkout.mjs";
import { SetUpError } from "./say.mjs";

/**
 * Runs an entry point's work and sets the exit code; prints a {@link SetUpError} without a stack trace.
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
 * Runs a script with the current Node, on the user's terminal.
 * @param {readonly string[]} argv
 * @returns {Promise<number>} exit code of the script; 128 + n after signal n
 */
export function runNode(argv) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, argv, { cwd: CHECKOUT, stdio: "inherit" });
    // The terminal sends Ctrl-C to parent and child; only the child reacts.
    const leaveItToTheChild = () => {};
    process.on("SIGINT", leaveItToTheChild);
    child.once("error", reject);
    child.once("exit", (code, signal) => {
      process.off("SIGINT", leaveItToTheChild);
      resolve(signal === null ? (code ?? 1) : 128 + constants.signals[signal]);
    });
  });
}
