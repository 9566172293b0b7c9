#!/usr/bin/env node
// A stand-in for `limactl`. The state is kept in the folder that LIMA_HOME names; `behind.json` there says what is behind it: `agent`, a
// world agent on this host, which listens where the description forwards its socket; or `manager`, the socket of a program that has a
// virtual machine (test/machine/lima-guest.ts).
import { spawn } from "node:child_process";
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";

const folder = process.env.LIMA_HOME ?? "";
/** @typedef {{ location: string, mountPoint?: string, writable: boolean }} Mount
 * @typedef {{ name: string, pid: number, config: { mounts: Mount[], portForwards: { hostSocket: string }[] } }} Machine */

/** @param {string} name */
const at = (name) => join(folder, name);
const words = process.argv.slice(2);
const [verb] = words;
/** @param {Machine} machine */
const write = (machine) => writeFileSync(at("machine.json"), JSON.stringify(machine));
appendFileSync(at("calls"), `${JSON.stringify(words)}\n`);

/**
 * What of a description counts here, from the lines that Substrate writes: this file runs where no package is.
 * @param {string} text
 */
function configOf(text) {
  const mounts = text.matchAll(/- location: (.+)\n\s+(?:mountPoint: (.+)\n\s+)?writable: (true|false)/g);
  const hostSocket = /hostSocket: (.+)/.exec(text)?.[1] ?? "";
  return {
    mounts: [...mounts].map(([, location = "", mountPoint, writable]) => ({
      location,
      ...(mountPoint === undefined ? {} : { mountPoint }),
      writable: writable === "true",
    })),
    portForwards: [{ hostSocket }],
  };
}

/** Not for a zombie: whoever was its parent has ended. @param {number} pid */
function isAlive(pid) {
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

/** @returns {{ agent?: { argv: string[], env: Record<string, string> }, manager?: string }} */
const behind = () => JSON.parse(readFileSync(at("behind.json"), "utf8"));

/**
 * Has the manager start or stop the guest. On an error, limactl exits with the manager's code and words.
 * @param {Machine} machine
 * @returns {Promise<{ pid: number }>}
 */
async function ask(machine) {
  const socket = connect(behind().manager ?? "");
  socket.end(`${JSON.stringify({ words, folder, machine })}\n`);
  let text = "";
  for await (const bytes of socket) text += bytes;
  const { code, out, err, pid } = JSON.parse(text);
  process.stdout.write(out);
  process.stderr.write(err);
  if (code !== 0) process.exit(code);
  return { pid };
}

/** @param {Machine} machine */
async function stop(machine) {
  if (behind().manager !== undefined) await ask(machine);
  else if (isAlive(machine.pid)) process.kill(machine.pid, "SIGTERM");
  while (isAlive(machine.pid)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
  write({ ...machine, pid: 0 });
}

/** @param {Machine} machine */
async function start(machine) {
  const { agent } = behind();
  if (agent === undefined) return write({ ...machine, ...(await ask(machine)) });
  const hostSocket = machine.config.portForwards[0]?.hostSocket ?? "";
  mkdirSync(join(hostSocket, ".."), { recursive: true });
  const log = openSync(at("agent.log"), "a");
  const child = spawn(agent.argv[0] ?? "", [...agent.argv.slice(1), "--socket", hostSocket], {
    cwd: "/",
    env: agent.env,
    detached: true,
    stdio: ["ignore", log, log],
  });
  child.unref();
  write({ ...machine, pid: child.pid ?? 0 });
}

/** The value of a word that begins so. @param {string} beginning */
const after = (beginning) => words.find((word) => word.startsWith(beginning))?.slice(beginning.length) ?? "";

/** @type {Machine | undefined} */
const machine = existsSync(at("machine.json"))
  ? JSON.parse(readFileSync(at("machine.json"), "utf8"))
  : undefined;
if (verb === "--version") console.log("limactl version 1.2.0");
else if (verb === "create") {
  const description = words.at(-1) ?? "";
  copyFileSync(description, at("lima.yaml"));
  write({ name: after("--name="), pid: 0, config: configOf(readFileSync(description, "utf8")) });
} else if (verb === "list") {
  const status = machine !== undefined && isAlive(machine.pid) ? "Running" : "Stopped";
  if (machine !== undefined) console.log(JSON.stringify({ ...machine, status, dir: folder }));
} else if (machine === undefined) {
  console.error('level=fatal msg="there is no machine"');
  process.exit(1);
} else if (verb === "start") await start(machine);
else if (verb === "stop") await stop(machine);
else if (verb === "shell" && behind().manager !== undefined) await ask(machine);
else if (verb === "edit") {
  machine.config.mounts = JSON.parse(after(".mounts = "));
  write(machine);
} else {
  console.error(`level=fatal msg="the stand-in knows no '${verb}'"`);
  process.exit(1);
}
