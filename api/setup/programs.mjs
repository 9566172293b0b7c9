import { spawn } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { CHECKOUT } from "./checkout.mjs";

/** Ordinary users often have no sbin on their PATH, yet may run what is in there. */
const SBIN = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

const TAIL_BYTES = 4000;

/**
 * @param {string} name
 * @returns {string | undefined} its full path
 */
export function findProgram(name) {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), ...SBIN].filter(
    (folder) => folder !== "",
  );
  return folders.map((folder) => join(folder, name)).find(isProgram);
}

/**
 * Runs a program without stdin and keeps the end of what it prints.
 * @param {readonly [string, ...string[]]} argv
 * @param {{ env?: Record<string, string>, timeoutMs?: number, killSignal?: NodeJS.Signals, holding?: number }} [options]
 *   `killSignal`: what it gets after `timeoutMs`; `holding`: a descriptor that it keeps open as its 3
 * @returns {Promise<{ ok: boolean, ending: string, tail: string }>} never rejects
 */
export function run([program, ...args], { env = {}, timeoutMs, killSignal = "SIGKILL", holding } = {}) {
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      cwd: CHECKOUT,
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
 * @returns {string} its last lines, indented
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
