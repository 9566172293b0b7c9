/**
 * What it costs that a command's changes are held: isolated commands beside plain ones, in turn, under the shipped policy in
 * enforce mode. `sh -c true` each, `: held` on the list of isolated ones.
 *
 *   plain      in the session's warm world
 *   isolated   in a world of its own, on an overlay of the project
 *   10 of …    10 files changed in a tree of 100,000, beside the same command plain
 *   created    30,000 files made, beside the same command plain
 *
 * Agents think between their commands, so each way pauses. Ratios are the result; the times are of this machine, now.
 *
 * Usage: node test/bench/changes.mjs [--rounds N] [--files N] [--pause MS]. Exit 1 when a limit is broken.
 */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { shippedPolicy, startBroker } from "./bench-broker.mjs";
import { median, printLimits, round3, shuffled, summarise } from "./numbers.mjs";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "200" },
    files: { type: "string", default: "100000" },
    pause: { type: "string", default: "150" },
  },
});
const [rounds, files, pauseMs] = [Number(values.rounds), Number(values.files), Number(values.pause)];
const HEAVY_ROUNDS = Math.max(3, Math.floor(rounds / 40));
const FOLDERS = 1000;
const CHANGED = 10;
const CREATED = 30_000;
const say = (/** @type {string} */ line) => process.stdout.write(`${line}\n`);
const pause = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms));

const HEAVY = `i=0; while [ $i -lt ${CREATED} ]; do : >made/$i; i=$((i+1)); done`;
const TEN = `i=0; while [ $i -lt ${CHANGED} ]; do echo changed >>tree/$i/$i; i=$((i+1)); done`;

const policy = shippedPolicy({
  "mode: observe": "mode: enforce",
  "  isolated:\n": '  isolated:\n    - ": held *"\n    - ": held"\n',
});
const broker = await startBroker({ policies: { default: policy }, project: fillProject });
try {
  const result = await measure();
  process.exitCode = printLimits(result) ? 0 : 1;
} finally {
  await broker.stop();
}

async function measure() {
  await untilIsolated();
  const ways = { plain: paced(() => run("true")), isolated: paced(() => run("true", true)) };
  await collectPaced(ways, 10);
  const paced_ = await collectPaced(ways, rounds);
  const ten = await collectPaced(
    { "10 plain": paced(() => run(TEN)), "10 isolated": paced(() => run(TEN, true)) },
    Math.max(10, Math.floor(rounds / 4)),
  );
  const made = () => rmSync(join(broker.project, "made"), { recursive: true, force: true });
  const fresh = () => {
    made();
    mkdirSync(join(broker.project, "made"));
  };
  const heavy = await collectPaced(
    { "30000 plain": paced(() => run(HEAVY), fresh), "30000 isolated": paced(() => run(HEAVY, true), fresh) },
    HEAVY_ROUNDS,
  );
  for (const [way, all] of Object.entries({ ...paced_, ...ten, ...heavy })) {
    const { median_ms, p99_ms } = summarise(all);
    say(`${way.padEnd(15)} median ${median_ms} ms, p99 ${p99_ms} ms, ${all.length} rounds`);
  }
  say(`isolated ÷ plain ${round3(median(paced_["isolated"]) / median(paced_["plain"]))}`);
  const more = (
    /** @type {Record<string, number[]>} */ all,
    /** @type {string} */ one,
    /** @type {string} */ other,
  ) => median(all[one]) - median(all[other]);
  return [
    { what: "isolated − plain, median", value: more(paced_, "isolated", "plain"), limit: 25, unit: " ms" },
    {
      what: `${CHANGED} changed files of ${files}: isolated − plain`,
      value: more(ten, "10 isolated", "10 plain"),
      // The world of its own, and what the listing adds to it.
      limit: 30,
      unit: " ms",
    },
    {
      what: `${CREATED} files created: isolated − plain`,
      value: more(heavy, "30000 isolated", "30000 plain"),
      limit: 2000,
      unit: " ms",
    },
  ];
}

/** The policy is read, and the verdict is what is measured. */
async function untilIsolated() {
  const reply = await run("true", true);
  if (reply.decision.verdict !== "isolate")
    throw new Error(`Not isolated: ${JSON.stringify(reply.decision)}`);
}

/** @param {string} cmd @param {boolean} [isolated] */
async function run(cmd, isolated = false) {
  const reply = await broker.ask({ agent_id: "bench", cmd: isolated ? `: held; ${cmd}` : cmd });
  if (reply.exit !== 0)
    throw new Error(`It ended with ${reply.exit}: ${JSON.stringify(reply).slice(0, 500)}`);
  return reply;
}

/** @param {() => Promise<unknown>} once @param {() => void} [before] */
function paced(once, before = () => {}) {
  return async () => {
    before();
    await pause(pauseMs);
    const begin = performance.now();
    await once();
    return performance.now() - begin;
  };
}

/** @param {Record<string, () => Promise<number>>} ways @param {number} count */
async function collectPaced(ways, count) {
  /** @type {Record<string, number[]>} */
  const all = Object.fromEntries(Object.keys(ways).map((name) => [name, []]));
  for (let round = 0; round < count; round += 1)
    for (const [name, way] of shuffled(Object.entries(ways), round)) all[name]?.push(await way());
  return all;
}

/** @param {string} project */
function fillProject(project) {
  mkdirSync(join(project, "made"));
  for (let folder = 0; folder < FOLDERS; folder += 1) {
    const path = join(project, "tree", String(folder));
    mkdirSync(path, { recursive: true });
    for (let file = 0; file < files / FOLDERS; file += 1)
      writeFileSync(join(path, String(file)), `${file}\n`);
  }
}
