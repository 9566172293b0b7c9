/**
 * What it costs that the direct writes of a command are told and listed: the same command through the broker and alone, by a
 * bare spawn, in turn. The broker's own part (deciding, recording) is measured with a command that writes nothing, and is
 * taken off.
 *
 *   10 of …    10 files changed in a tree of 100,000
 *   created    30,000 files made
 *
 * Ratios and differences are the result; the times are of this machine, now. Files are made in a new folder each time, and
 * removed at the end: ext4 gives no inode again in the first seconds, and looks for another one at each file.
 *
 * Usage: node test/bench/direct-changes.mjs [--rounds N] [--files N] [--created N]. Exit 1 when a limit is broken.
 */
import { spawn } from "node:child_process";
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startBroker } from "./bench-broker.mjs";
import { median, printLimits, shuffled, summarise } from "./numbers.mjs";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "40" },
    files: { type: "string", default: "100000" },
    created: { type: "string", default: "30000" },
  },
});
const [rounds, files, created] = [Number(values.rounds), Number(values.files), Number(values.created)];
const FOLDERS = 1000;
const CHANGED = 10;
const NONE = "true";
const TEN = `i=0; while [ $i -lt ${CHANGED} ]; do echo changed >>tree/$i/0; i=$((i+1)); done`;
const MANY = `i=0; while [ $i -lt ${created} ]; do : >made/$i; i=$((i+1)); done`;

const broker = await startBroker({ project: fillProject });
try {
  process.exitCode = printLimits(await measure()) ? 0 : 1;
} finally {
  await broker.stop();
}

async function measure() {
  const light = await collect({ none: NONE, ten: TEN }, rounds);
  const heavy = await collect({ many: MANY }, Math.max(3, Math.floor(rounds / 10)));
  const all = { ...light, ...heavy };
  for (const [way, times] of Object.entries(all)) {
    const { median_ms, p99_ms } = summarise(times);
    process.stdout.write(
      `${way.padEnd(12)} median ${median_ms} ms, p99 ${p99_ms} ms, ${times.length} rounds\n`,
    );
  }
  const more = (/** @type {string} */ what) => median(all[`${what} told`]) - median(all[`${what} alone`]);
  return [
    {
      what: `${CHANGED} changed files of ${files}: told and listed − alone`,
      value: more("ten") - more("none"),
      limit: 5,
      unit: " ms",
    },
    {
      what: `${created} files created: told and listed − alone`,
      value: more("many") - more("none"),
      limit: 2000,
      unit: " ms",
    },
  ];
}

/** @param {Record<string, string>} commands @param {number} count */
async function collect(commands, count) {
  /** @type {Record<string, number[]>} */
  const all = {};
  const ways = Object.entries(commands).flatMap(([name, cmd]) => [
    { name: `${name} told`, once: () => told(cmd) },
    { name: `${name} alone`, once: () => alone(cmd) },
  ]);
  for (const { name } of ways) all[name] = [];
  for (let round = -2; round < count; round += 1) {
    for (const { name, once } of shuffled(ways, Math.abs(round))) {
      const made = join(broker.project, "made");
      mkdirSync(made);
      const begin = performance.now();
      await once();
      if (round >= 0) all[name]?.push(performance.now() - begin);
      renameSync(made, `${made}-${name.replace(" ", "-")}-${round}`);
    }
  }
  return all;
}

/** @param {string} cmd */
async function told(cmd) {
  const reply = await broker.ask({ agent_id: "bench", cmd });
  const { summary, writes, mods } = reply.fs_diff;
  const listed = writes.length + mods.length;
  const wanted = cmd === NONE ? 0 : cmd === TEN ? CHANGED : Math.min(created, 1000);
  if (reply.exit !== 0 || listed !== wanted)
    throw new Error(`It ended with ${reply.exit} and listed ${listed} of ${wanted}: ${summary}`);
}

/** @param {string} cmd */
async function alone(cmd) {
  const child = spawn("/bin/sh", ["-c", cmd], { cwd: broker.project, stdio: ["ignore", "pipe", "pipe"] });
  child.stdout.resume();
  child.stderr.resume();
  await new Promise((resolve) => child.once("close", resolve));
}

/** @param {string} project */
function fillProject(project) {
  for (let folder = 0; folder < FOLDERS; folder += 1) {
    const path = join(project, "tree", String(folder));
    mkdirSync(path, { recursive: true });
    for (let file = 0; file < files / FOLDERS; file += 1)
      writeFileSync(join(path, String(file)), `${file}\n`);
  }
}
