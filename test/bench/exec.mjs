/**
 * What a governed command costs beside an ungoverned one: `sh -c true` in several ways, in one run, in an order
 * that changes every round.
 *
 *   spawn  Node's child_process.spawn with both outputs collected
 *   api    POST /v1/execute on one kept-alive connection to a broker of its own
 *   api-new  the same with a text that the broker has not seen before: `true # 1`, `true # 2`, …
 *   bwrap  a fresh bubblewrap sandbox for each command
 *   cli    `substrate exec -- true` with the native front: one spawn more, and a stream of its own
 *   npm    the same by the name that npm puts on PATH: a shell that becomes the native front
 *
 * bwrap, cli and npm each take turns with spawn alone, after the others: the kernel takes its namespaces down when it has long ended, on a
 * processor that whatever comes next needs too. On two processors that moved `api` from 1.21 to 1.30 times a spawn.
 *
 * Ratios are the result; the times are of this machine, now. Usage: node test/bench/exec.mjs [--rounds N] [--json FILE]
 */
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { inTurn, round3, summarise } from "./numbers.mjs";

const LAUNCHER = fileURLToPath(new URL("../../api/bin/substrate.mjs", import.meta.url));
const FRONT = fileURLToPath(new URL("../../.build/substrate", import.meta.url));
const WARM_UP = 100;
const BWRAP = "--ro-bind / / --dev /dev --proc /proc --unshare-all /bin/sh -c true".split(" ");

const { values } = parseArgs({
  options: { rounds: { type: "string", default: "1500" }, json: { type: "string" } },
});
const rounds = Number(values.rounds);
if (!Number.isInteger(rounds) || rounds < 10)
  throw new Error(`--rounds takes a whole number from 10, received '${values.rounds}'`);

const folder = mkdtempSync(join(tmpdir(), "substrate-bench-"));
const home = join(folder, "home");
const project = join(folder, "project");
// A folder without a mark is no project in /tmp.
spawnSync("git", ["init", "-q", project]);
const IN_PROJECT = { cwd: project, env: { ...process.env, SUBSTRATE_HOME: home } };
const broker = spawn(process.execPath, [LAUNCHER, "broker", "start", "--foreground"], {
  env: { ...process.env, SUBSTRATE_HOME: home },
  stdio: ["ignore", "ignore", "inherit"],
  cwd: project,
});
try {
  const result = await measure();
  print(result);
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(result, null, 2)}\n`);
} finally {
  broker.kill("SIGTERM");
  await new Promise((resolve) => broker.once("exit", resolve));
  rmSync(folder, { recursive: true, force: true });
}

async function measure() {
  const ways = {
    spawn: viaSpawn,
    api: viaApi(() => "true"),
    "api-new": viaApi(neverSeen()),
  };
  await untilReady(ways.api);
  const governed = await besideSpawn(ways);
  const sandboxed = hasBwrap() ? await besideSpawn({ spawn: viaSpawn, bwrap: viaBwrap }) : undefined;
  const typed = await besideSpawn({ spawn: viaSpawn, cli: viaFront });
  const linked = await besideSpawn({ spawn: viaSpawn, npm: viaNpm(linkAsNpm()) });
  const summary = { ...sandboxed?.summary, ...typed.summary, ...linked.summary, ...governed.summary };
  const ratios = { ...sandboxed?.ratios, ...typed.ratios, ...linked.ratios, ...governed.ratios };
  return {
    command: "/bin/sh -c true",
    rounds,
    baseline_rss_mb: Math.round(process.memoryUsage().rss / 1e6),
    node: process.version,
    summary,
    ratios,
  };
}

/**
 * Medians and p99 of ways that take turns, and each median ÷ the one of `spawn` among them.
 * @param {Record<string, () => Promise<void>>} ways
 */
async function besideSpawn(ways) {
  await inTurn(ways, WARM_UP);
  const times = await inTurn(ways, rounds);
  const summary = Object.fromEntries(Object.entries(times).map(([name, all]) => [name, summarise(all)]));
  const base = summary["spawn"]?.median_ms ?? Number.NaN;
  const ratios = Object.fromEntries(
    Object.entries(summary).map(([name, { median_ms }]) => [`${name}/spawn`, round3(median_ms / base)]),
  );
  return { summary, ratios };
}

/** @returns {Promise<void>} */
function viaSpawn() {
  return collect("/bin/sh", ["-c", "true"]);
}

/** @returns {Promise<void>} */
function viaBwrap() {
  return collect("bwrap", BWRAP);
}

/** @returns {Promise<void>} */
function viaFront() {
  return collect(FRONT, ["exec", "--", "true"], IN_PROJECT);
}

/** @param {string} program @returns {() => Promise<void>} */
function viaNpm(program) {
  return () => collect(program, ["exec", "--", "true"], IN_PROJECT);
}

/** @returns {string} a link to the launcher, from where `npm install --global` puts one */
function linkAsNpm() {
  const bin = join(folder, "bin/substrate");
  mkdirSync(join(folder, "bin"));
  mkdirSync(join(folder, "lib/node_modules"), { recursive: true });
  symlinkSync(fileURLToPath(new URL("../..", import.meta.url)), join(folder, "lib/node_modules/substrate"));
  symlinkSync("../lib/node_modules/substrate/api/bin/substrate.mjs", bin);
  return bin;
}

/**
 * @param {string} file
 * @param {string[]} words
 * @param {import("node:child_process").SpawnOptions} options
 * @returns {Promise<void>}
 */
function collect(file, words, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(file, words, { ...options, stdio: ["ignore", "pipe", "pipe"] });
    /** @type {Buffer[]} */
    const output = [];
    child.stdout.on("data", (chunk) => output.push(chunk));
    child.stderr.on("data", (chunk) => output.push(chunk));
    child.once("error", reject);
    child.once("close", (code) =>
      code === 0
        ? resolve()
        : reject(new Error(`${file} ended with ${code}: ${Buffer.concat(output).toString()}`)),
    );
  });
}

/** @param {() => string} next @returns {() => Promise<void>} */
function viaApi(next) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const target = {
    socketPath: join(home, "sock/agent.sock"),
    path: "/v1/execute",
    method: "POST",
    agent,
  };
  return () => {
    const body = JSON.stringify({ agent_id: "bench", cwd: project, cmd: next() });
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
    return new Promise((resolve, reject) => {
      const outgoing = request({ ...target, headers }, (response) => {
        /** @type {Buffer[]} */
        const parts = [];
        response.on("data", (chunk) => parts.push(chunk));
        response.on("end", () => {
          const reply = JSON.parse(Buffer.concat(parts).toString("utf8"));
          if (response.statusCode === 200 && reply.exit === 0) resolve();
          else reject(new Error(`The broker answered ${response.statusCode}: ${JSON.stringify(reply)}`));
        });
      });
      outgoing.on("error", reject);
      outgoing.end(body);
    });
  };
}

/** @returns {() => string} */
function neverSeen() {
  let number = 0;
  return () => {
    number += 1;
    return `true # ${number}`;
  };
}

/** @param {() => Promise<void>} run */
async function untilReady(run) {
  for (const end = Date.now() + 20_000; ; ) {
    try {
      return await run();
    } catch (error) {
      if (Date.now() > end || broker.exitCode !== null) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

function hasBwrap() {
  const found = spawnSync("bwrap", BWRAP);
  if (found.status === 0) return true;
  process.stdout.write(
    `SKIP bwrap — ${found.error === undefined ? `it fails here: ${found.stderr.toString()}` : "not installed: apt-get install bubblewrap"}\n`,
  );
  return false;
}

/** @param {Awaited<ReturnType<typeof measure>>} result */
function print(result) {
  const out = (/** @type {string} */ line) => process.stdout.write(`${line}\n`);
  out(
    `${result.command}, ${result.rounds} rounds in turn, Node ${result.node}, measuring process ${result.baseline_rss_mb} MB resident`,
  );
  out(`${"way".padEnd(9)}${"median ms".padStart(12)}${"p99 ms".padStart(12)}${"÷ spawn".padStart(12)}`);
  for (const [name, { median_ms, p99_ms }] of Object.entries(result.summary)) {
    out(
      `${name.padEnd(9)}${String(median_ms).padStart(12)}${String(p99_ms).padStart(12)}${String(result.ratios[`${name}/spawn`]).padStart(12)}`,
    );
  }
  out(JSON.stringify(result));
}
