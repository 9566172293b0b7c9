/**
 * What worlds cost: to make one, to keep one, and to keep many.
 *
 *   cold   POST /v1/execute under the shipped policy with `reuse_session: false`: a world is made, `true` runs in it
 *   bwrap  `bwrap --unshare-all --ro-bind / / --proc /proc --dev /dev true`
 *   idle   PSS and page tables of all processes of one world that waits for a command
 *   many   300 sessions, one world each, open at once; then each is used again, then all are closed
 *
 * Usage: node test/bench/worlds.mjs [--rounds N] [--worlds N]. Exit 1 when a limit is broken or something fails.
 */
import { spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { parseArgs } from "node:util";
import { shippedPolicy, startBroker } from "./bench-broker.mjs";
import { below, held, resident } from "./memory.mjs";
import { inTurn, median, printLimits, round3, summarise } from "./numbers.mjs";

const BWRAP = "--unshare-all --ro-bind / / --proc /proc --dev /dev true".split(" ");
const WARM_UP = 10;
const MB = 1e6;
/** How many worlds at the start and at the end of the row are compared. */
const EDGE = 30;

const { values } = parseArgs({
  options: { rounds: { type: "string", default: "200" }, worlds: { type: "string", default: "300" } },
});
const rounds = atLeast("rounds", values.rounds, 10);
const worlds = atLeast("worlds", values.worlds, 2 * EDGE);
const say = (/** @type {string} */ line) => process.stdout.write(`${line}\n`);

if (spawnSync("bwrap", BWRAP).status !== 0) {
  say(
    "bwrap is not there or does not work here, and nothing can be compared with it: apt-get install bubblewrap",
  );
  process.exit(1);
}
say(
  `Node ${process.version}, measuring process ${Math.round(process.memoryUsage().rss / MB)} MB resident, ${rounds} rounds in turn, ${worlds} worlds`,
);
const cold = await coldWorlds();
const idle = await idleWorld();
const many = await manyWorlds();
const within = printLimits([
  { what: "cold world, first command answered ÷ one bwrap", value: cold.ratio, limit: 4 },
  {
    what: "resident memory of one idle world (PSS and page tables)",
    value: idle / MB,
    limit: 3,
    unit: " MB",
  },
  { what: `open time of the last ${EDGE} worlds ÷ the first ${EDGE}`, value: many.ratio, limit: 2 },
  { what: `worlds of ${worlds} that failed to open, to be used or to close`, value: many.failures, limit: 0 },
]);
process.exitCode = within ? 0 : 1;

async function coldWorlds() {
  const policies = { default: shippedPolicy({ "reuse_session: true": "reuse_session: false" }) };
  const broker = await startBroker({ policies });
  try {
    const ways = { cold: () => good(broker.ask({ agent_id: "bench", cmd: "true" })), bwrap: viaBwrap };
    await inTurn(ways, WARM_UP);
    const times = await inTurn(ways, rounds);
    for (const [way, all] of Object.entries(times)) {
      const { median_ms, p99_ms } = summarise(all);
      say(`${way.padEnd(9)} median ${median_ms} ms, p99 ${p99_ms} ms`);
    }
    return { ratio: median(times["cold"]) / median(times["bwrap"]) };
  } finally {
    await broker.stop();
  }
}

async function idleWorld() {
  const broker = await startBroker();
  try {
    await good(broker.ask({ agent_id: "ready", cmd: "true" }));
    await pause(300);
    const { processes, pss, rss, pageTables } = held(below(broker.pid));
    say(
      `idle world: ${processes} processes, PSS ${round3(pss / MB)} MB, RSS ${round3(rss / MB)} MB (pages that they share counted for each), page tables ${round3(pageTables / MB)} MB`,
    );
    return pss + pageTables;
  } finally {
    await broker.stop();
  }
}

async function manyWorlds() {
  const broker = await startBroker();
  const before = resident(broker.pid);
  /** @type {number[]} */
  const opened = [];
  let failures = 0;
  const count = (/** @type {unknown} */ error) => {
    failures += 1;
    if (failures < 4) say(`failed: ${error instanceof Error ? error.message : String(error)}`);
  };
  const use = (/** @type {number} */ number) =>
    good(broker.ask({ agent_id: `agent-${number}`, cmd: "true" })).catch(count);
  for (let number = 0; number < worlds; number += 1) {
    const begin = performance.now();
    await use(number);
    opened.push(performance.now() - begin);
  }
  for (let number = 0; number < worlds; number += 1) await use(number);
  const after = resident(broker.pid);
  const inits = below(broker.pid);
  const { pss, pageTables } = held(inits);
  const begin = performance.now();
  await broker.stop();
  const left = inits.filter((pid) => existsSync(`/proc/${pid}/smaps_rollup`) && resident(pid) > 0);
  failures += left.length;
  say(
    `${worlds} worlds: opened in ${median(opened.slice(0, EDGE)).toFixed(1)} ms (first ${EDGE}) and ${median(opened.slice(-EDGE)).toFixed(1)} ms (last ${EDGE}), p99 ${summarise(opened).p99_ms} ms; ${round3((pss + pageTables) / MB / worlds)} MB each; closed in ${Math.round(performance.now() - begin)} ms, ${left.length} processes left`,
  );
  say(`broker: ${Math.round(before / MB)} MB before, ${Math.round(after / MB)} MB with ${worlds} worlds`);
  return { ratio: median(opened.slice(-EDGE)) / median(opened.slice(0, EDGE)), failures };
}

/** @param {Promise<import("./bench-broker.mjs").Reply>} reply */
async function good(reply) {
  const { exit } = await reply;
  if (exit !== 0) throw new Error(`'true' ended with ${exit}`);
}

/** @returns {Promise<void>} */
function viaBwrap() {
  return new Promise((resolve, reject) => {
    const child = spawn("bwrap", BWRAP, { stdio: ["ignore", "pipe", "pipe"] });
    child.stdout.resume();
    child.stderr.resume();
    child.once("error", reject);
    child.once("close", (code) => (code === 0 ? resolve() : reject(new Error(`bwrap ended with ${code}`))));
  });
}

/** @param {number} ms */
function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** @param {string} name @param {string} text @param {number} least */
function atLeast(name, text, least) {
  const number = Number(text);
  if (Number.isInteger(number) && number >= least) return number;
  throw new Error(`--${name} takes a whole number from ${least}, received '${text}'`);
}
