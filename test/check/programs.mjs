import { spawn } from "node:child_process";

/**
 * Runs a script with this Node and collects what it prints.
 * @param {string} root the working directory
 * @param {readonly string[]} argv
 * @returns {Promise<string[]>} no line when it ended with 0, else its output and how it ended
 */
export function runScript(root, argv) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, argv, { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
    /** @type {Buffer[]} */
    const output = [];
    child.stdout.on("data", (bytes) => output.push(bytes));
    child.stderr.on("data", (bytes) => output.push(bytes));
    child.once("error", (error) => resolve([error.message]));
    child.once("close", (code, signal) => {
      if (code === 0) return resolve([]);
      const text = Buffer.concat(output).toString().trimEnd();
      resolve([...(text === "" ? [] : [text]), `${argv[0]} ended with ${signal ?? `exit code ${code}`}`]);
    });
  });
}
