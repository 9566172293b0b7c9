import { spawn } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { CHECKOUT } from "./checkout.mjs";

/** Ordinary users may run the programs in sbin, but often lack sbin on PATH. */
const SBIN = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

const TAIL_BYTES = 4000;

/**
 * @param {string} name
 * @returns {string | undefined} full path of the program
 */
export function findProgram(name) {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), ...SBIN].filter(
    (folder) => folder !== "",
  );
  return folders.map((folder) => join(folder, name)).find(isProgram);
}

/**
 * Runs a program without stdin and keeps the end of the output.
 * @param {readonly [string, ...string[]]} argv
 * @param {{ cwd?: string, env?: Record<string, string>, timeoutMs?: number, killSignal?: NodeJS.Signals, holding?: number }} [options]
 *   `killSignal`: sent after `timeoutMs`; `holding`: a descriptor inherited by the program as number 3
 * @returns {Promise<{ ok: boolean, ending: string, tail: string }>} never rejects
 */
export function run(
  [program, ...args],
  { cwd = CHECKOUT, env = {}, timeoutMs, killSignal = "SIGKILL", holding } = {},
) {
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe", holding ?? "ignore"],
      ...(timeoutMs === undefined ? {} : { timeout: timeoutMs, killSignal }),
    });
    let tail = "";
    const keep = (/** @type {Buffer} */ bytes) => {
      tail = (tail + bytes.toString()).slice(-TAIL_BYTES);
    };
    child.stdout?.on("data", keep);
    child.stderr?.on("data", keep);
    child.once("error", (error) => resolve({ ok: false, ending: error.message, tail }));
    child.once("close", (code, signal) =>
      resolve({ ok: code === 0, ending: signal === null ? `exit code ${code}` : `signal ${signal}`, tail }),
    );
  });
}

/**
 * @param {string} text
 * @param {number} count
 * @returns {string} the last lines of the text, indented
 */
export function lastLines(text, count) {
  return text
    .trimEnd()
    .split("\n")
    .slice(-count)
    .map((line) => `    ${line}`)
    .join("\n");
}

/** @param {string} path */
function isProgram(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
