/**
 * What streams cost beside a bare pipe and a bare terminal (node-pty), in one run, in turn.
 *
 *   pipe      100 MB from `head -c` to this process: a bare pipe, a WebSocket, and `substrate exec` with the native front
 *   terminal  20 MB through a raw terminal: node-pty, and a WebSocket
 *   echo      from a key to its echo by the terminal: node-pty, and a WebSocket
 *   first     from the time that a command writes to the arrival of its first byte: a bare pipe, and `substrate exec`
 *
 * Usage: node test/bench/stream.mjs [--rounds N]
 */
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { spawn as spawnTerminal } from "node-pty";
import { WebSocket } from "ws";
import { collectInTurn, median, printLimits, quantile } from "./numbers.mjs";

const LAUNCHER = fileURLToPath(new URL("../../api/bin/substrate.mjs", import.meta.url));
const FRONT = fileURLToPath(new URL("../../.build/substrate", import.meta.url));
const MB = 1_000_000;
const FIRST = "date +%s%N; sleep 0.05";
const RAW = `stty raw -echo; head -c ${20 * MB} /dev/zero`;
const PIPED = `head -c ${100 * MB} /dev/zero`;

const { values } = parseArgs({ options: { rounds: { type: "string", default: "15" } } });
const rounds = Number(values.rounds);
if (!Number.isInteger(rounds) || rounds < 3)
  throw new Error(`--rounds takes a whole number from 3, received '${values.rounds}'`);

const folder = mkdtempSync(join(tmpdir(), "substrate-bench-"));
const home = join(folder, "home");
const project = join(folder, "project");
spawnSync("git", ["init", "-q", project]);
const broker = spawn(process.execPath, [LAUNCHER, "broker", "start", "--foreground"], {
  env: { ...process.env, SUBSTRATE_HOME: home },
  stdio: ["ignore", "ignore", "inherit"],
  cwd: project,
});
try {
  await ready();
  await take(await open({ cmd: "true" }));
  const pipe = await collectInTurn({ bare: barePipe, stream: streamPipe, exec: execPipe }, rounds);
  const terminal = await collectInTurn({ bare: bareTerminal, stream: streamTerminal }, rounds);
  const echo = await echoes();
  const first = await collectInTurn(
    {
      bare: () => firstByte("/bin/sh", ["-c", FIRST]),
      exec: () => firstByte(FRONT, ["exec", "--", FIRST]),
    },
    rounds * 4,
  );
  for (const [what, times] of Object.entries({ pipe, terminal, echo, first })) print(what, times);
  const p99 = (/** @type {number[] | undefined} */ times = []) => quantile(times, 0.99);
  const isWithin = printLimits([
    { what: "pipe: stream ÷ bare", value: median(pipe["stream"]) / median(pipe["bare"]), limit: 2 },
    { what: "pipe: exec ÷ bare", value: median(pipe["exec"]) / median(pipe["bare"]), limit: 2 },
    {
      what: "terminal: stream ÷ node-pty",
      value: median(terminal["stream"]) / median(terminal["bare"]),
      limit: 1.25,
    },
    {
      what: "echo of a key, p99: stream - node-pty",
      value: p99(echo["stream"]) - p99(echo["bare"]),
      limit: 2,
      unit: " ms",
    },
    {
      what: "first byte of exec, median - bare",
      value: median(first["exec"]) - median(first["bare"]),
      limit: 10,
      unit: " ms",
    },
  ]);
  if (!isWithin) process.exitCode = 1;
} finally {
  broker.kill("SIGTERM");
  await new Promise((resolve) => broker.once("exit", resolve));
  rmSync(folder, { recursive: true, force: true });
}

/** @param {string} what @param {Record<string, number[]>} times of each way, in milliseconds */
function print(what, times) {
  for (const [way, each] of Object.entries(times))
    console.log(
      `${what.padEnd(9)} ${way.padEnd(7)} median ${median(each).toFixed(2)} ms, p99 ${quantile(each, 0.99).toFixed(2)} ms`,
    );
}

async function ready() {
  for (let attempt = 0; attempt < 400; attempt += 1) {
    const isThere = await new Promise((resolve) => {
      const socket = connect(join(home, "sock/agent.sock"));
      socket.once("connect", () => {
        socket.destroy();
        resolve(true);
      });
      socket.once("error", () => resolve(false));
    });
    if (isThere) return;
    await sleep(50);
  }
  throw new Error("The broker did not become ready");
}

/** @param {object} first @returns {Promise<WebSocket>} */
function open(first) {
  const socket = new WebSocket("ws://broker/v1/stream", {
    createConnection: () => connect(join(home, "sock/agent.sock")),
    perMessageDeflate: false,
  });
  return new Promise((resolve, reject) => {
    socket.once("error", reject);
    socket.once("open", () => {
      socket.send(JSON.stringify({ agent_id: "bench", cwd: project, ...first }));
      resolve(socket);
    });
  });
}

/** Counts the output until the end. @param {WebSocket} socket @returns {Promise<number>} */
function take(socket) {
  let bytes = 0;
  socket.on("message", (data, isBinary) => {
    if (isBinary) bytes += /** @type {Buffer} */ (data).length - 1;
  });
  return new Promise((resolve) => socket.once("close", () => resolve(bytes)));
}

/** @param {() => Promise<number>} read @param {number} wanted */
async function timed(read, wanted) {
  const began = performance.now();
  const bytes = await read();
  const took = performance.now() - began;
  if (bytes !== wanted) throw new Error(`Expected ${wanted} bytes, received ${bytes}`);
  return [took];
}

/** @param {string} program @param {readonly string[]} words @returns {Promise<number>} */
function piped(program, words) {
  let bytes = 0;
  const child = spawn(program, words, {
    cwd: project,
    env: { ...process.env, SUBSTRATE_HOME: home },
    stdio: ["ignore", "pipe", "inherit"],
  });
  child.stdout.on("data", (part) => (bytes += part.length));
  return new Promise((resolve) => child.once("close", () => resolve(bytes)));
}

function barePipe() {
  return timed(() => piped("/bin/sh", ["-c", PIPED]), 100 * MB);
}

function streamPipe() {
  return timed(async () => await take(await open({ cmd: PIPED, stdin: false })), 100 * MB);
}

function execPipe() {
  return timed(() => piped(FRONT, ["exec", "--", PIPED]), 100 * MB);
}

function bareTerminal() {
  return timed(
    () =>
      new Promise((resolve) => {
        let bytes = 0;
        const terminal = spawnTerminal("/bin/sh", ["-c", `${RAW}; sleep 60`], {
          cwd: project,
          encoding: null,
        });
        terminal.onData((data) => {
          bytes += data.length;
          // node-pty loses what is left when the program ends, so the program lives until the last byte has come.
          if (bytes < 20 * MB) return;
          terminal.kill();
          resolve(bytes);
        });
      }),
    20 * MB,
  );
}

function streamTerminal() {
  return timed(async () => await take(await open({ cmd: RAW, pty: true })), 20 * MB);
}

/** Times of single keys, which are too short for a round of their own. */
async function echoes() {
  const bare = spawnTerminal("/bin/sh", ["-c", "cat > /dev/null"], { cwd: project });
  const stream = await open({ cmd: "cat > /dev/null", pty: true });
  let onBare = () => {};
  let onStream = () => {};
  bare.onData(() => onBare());
  stream.on("message", (_data, isBinary) => isBinary && onStream());
  await sleep(500);
  /** @param {(heard: () => void) => void} listen @param {() => void} type */
  const key = async (listen, type) => {
    const began = performance.now();
    await new Promise((heard) => {
      listen(() => heard(undefined));
      type();
    });
    return [performance.now() - began];
  };
  const times = await collectInTurn(
    {
      bare: () =>
        key(
          (heard) => (onBare = heard),
          () => bare.write("x"),
        ),
      stream: () =>
        key(
          (heard) => (onStream = heard),
          () => stream.send(Buffer.from("\0x")),
        ),
    },
    rounds * 40,
  );
  bare.kill();
  stream.terminate();
  return times;
}

/** @param {string} program @param {readonly string[]} words */
function firstByte(program, words) {
  const child = spawn(program, words, {
    cwd: project,
    env: { ...process.env, SUBSTRATE_HOME: home },
    stdio: ["ignore", "pipe", "inherit"],
  });
  return new Promise((/** @type {(times: number[]) => void} */ resolve) => {
    child.stdout.once("data", (data) => {
      const now = performance.timeOrigin + performance.now();
      const written = Number(BigInt(data.toString().trim()) / 1000n) / 1000;
      child.once("close", () => resolve([now - written]));
    });
  });
}
