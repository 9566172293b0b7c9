/**
 * What 200 denied globs cost on a tree of 100,000 files in 5,000 folders.
 *
 *   plain, globs            `true` in a warm world, without and with the globs in `fs.deny_read`
 *   cold-plain, cold-globs  the same in a world that is made for it (`reuse_session: false`)
 *
 * Four agents with a policy each, asked in turn. Usage: node test/bench/globs.mjs [--rounds N] [--cold N].
 * Exit 1 when a limit is broken, or when the globs are not enforced: then there is nothing to measure.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startBroker } from "./bench-broker.mjs";
import { inTurn, median, printLimits, summarise } from "./numbers.mjs";

const FOLDERS = 5000;
const FILES_PER_FOLDER = 20;
const GLOBS = 200;
const WARM_UP = 5;
/** "No measurable cost": what two equal sessions differ by on a busy machine. */
const SAME = 1.05;

const { values } = parseArgs({
  options: { rounds: { type: "string", default: "1000" }, cold: { type: "string", default: "60" } },
});
const rounds = Number(values.rounds);
const coldRounds = Number(values.cold);
const say = (/** @type {string} */ line) => process.stdout.write(`${line}\n`);

const AGENTS = ["plain", "globs", "cold-plain", "cold-globs"];
const policies = {
  default: policyText("default"),
  ...Object.fromEntries(AGENTS.map((name) => [name, policyText(name)])),
};
const config = `agents:\n${AGENTS.map((name) => `  ${name}: { policy: ${name} }\n`).join("")}`;
const broker = await startBroker({ policies, config, project: makeTree });
try {
  process.exitCode = (await measure()) ? 0 : 1;
} finally {
  await broker.stop();
}

async function measure() {
  const enforced = await areEnforced();
  if (enforced !== undefined) {
    say(`Cannot measure: ${enforced}`);
    return false;
  }
  const warm = { plain: run("plain"), globs: run("globs") };
  const cold = { "cold-plain": run("cold-plain"), "cold-globs": run("cold-globs") };
  await inTurn({ ...warm, ...cold }, WARM_UP);
  const times = { ...(await inTurn(warm, rounds)), ...(await inTurn(cold, coldRounds)) };
  say(
    `${GLOBS} globs, ${FOLDERS * FILES_PER_FOLDER} files, Node ${process.version}, measuring process ${Math.round(process.memoryUsage().rss / 1e6)} MB resident`,
  );
  for (const [way, all] of Object.entries(times)) {
    const { median_ms, p99_ms } = summarise(all);
    say(
      `${way.padEnd(11)} ${String(all.length).padStart(5)} times: median ${median_ms} ms, p99 ${p99_ms} ms`,
    );
  }
  const coldPlain = median(times["cold-plain"]);
  const coldGlobs = median(times["cold-globs"]);
  say(`a world with the globs ÷ without: ${(coldGlobs / coldPlain).toFixed(2)}`);
  return printLimits([
    {
      what: "a command with the globs ÷ without",
      value: median(times["globs"]) / median(times["plain"]),
      limit: SAME,
    },
    { what: "the globs, once per world", value: coldGlobs - coldPlain, limit: 400, unit: " ms" },
  ]);
}

/** Why there is nothing to measure; undefined when the globs hide what they name and nothing else. */
async function areEnforced() {
  for (const agent of AGENTS) {
    const reply = await broker
      .ask({ cmd: `cat ${secretFile(0)} 2> /dev/null; cat ${plainFile(0)}` }, agent)
      .catch((/** @type {unknown} */ error) => (error instanceof Error ? error : new Error(String(error))));
    if (reply instanceof Error) return `the policy '${agent}' is not taken: ${reply.message}`;
    const output = Buffer.from(reply.stdout_b64, "base64").toString("utf8");
    const wanted = agent.endsWith("globs") ? "plain" : "secretplain";
    if (output !== wanted)
      return `'${agent}' read '${output}' instead of '${wanted}': the globs are not enforced`;
  }
  return undefined;
}

/** @param {string} agent @returns {() => Promise<void>} */
function run(agent) {
  return async () => {
    const { exit } = await broker.ask({ cmd: "true" }, agent);
    if (exit !== 0) throw new Error(`'true' ended with ${exit} for '${agent}'`);
  };
}

/** @param {string} name */
function policyText(name) {
  const denied = name.endsWith("globs")
    ? globs()
        .map((glob) => `    - "${glob}"\n`)
        .join("")
    : "";
  const files = denied === "" ? "" : `fs:\n  deny_read:\n${denied}`;
  return `id: ${name}\nname: Bench\nmode: enforce\n${files}world:\n  reuse_session: ${!name.startsWith("cold")}\n`;
}

/** Half by name at any depth, a quarter by suffix at any depth, a quarter below one folder. */
function globs() {
  return Array.from({ length: GLOBS }, (_, number) => {
    if (number % 2 === 0) return `**/name-${number}`;
    return number % 4 === 1 ? `**/*.suffix${number}` : `group-${number % 10}/**/x*${number}`;
  });
}

/** @param {string} project */
function makeTree(project) {
  for (let number = 0; number < FOLDERS; number += 1) {
    const folder = join(project, folderOf(number));
    mkdirSync(folder, { recursive: true });
    for (let file = 1; file < FILES_PER_FOLDER; file += 1)
      writeFileSync(join(folder, `file-${file}.txt`), "plain");
    // One folder of a hundred holds a file that a glob names.
    writeFileSync(
      join(folder, number % 100 === 0 ? "name-0" : "file-0.txt"),
      number % 100 === 0 ? "secret" : "plain",
    );
  }
}

/** @param {number} number */
function folderOf(number) {
  return join(`group-${number % 10}`, `part-${Math.floor(number / 10) % 50}`, `folder-${number}`);
}

/** @param {number} number */
function secretFile(number) {
  return join(folderOf(number * 100), "name-0");
}

/** @param {number} number */
function plainFile(number) {
  return join(folderOf(number * 100), "file-1.txt");
}
