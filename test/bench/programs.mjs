/**
 * What the gate at each start of a program costs, in one run, in turn.
 *
 *   loop   a shell that starts /bin/true N times in a world
 *     off    no listener: the kernel asks nobody
 *     told   each start is told, and a gate of 60 names concerns none of them
 *     asked  each start waits for an answer, as under an allow-list
 *   make   `make -j2` of a C project, in a world with the gate (told) and on the host
 *   types  this project's own type-check, the same two
 *
 * Usage: node test/bench/programs.mjs [--rounds N] [--starts N] [--files N] [--json FILE]
 */
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { bundledWorlds } from "./bundled-worlds.mjs";
import { inTurn, round3, summarise } from "./numbers.mjs";

const CHECKOUT = fileURLToPath(new URL("../..", import.meta.url));
const PATH = "/usr/local/bin:/usr/bin:/bin";
const NAMES = Array.from({ length: 60 }, (_, each) => `no-such-program-${each}`);

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "15" },
    starts: { type: "string", default: "1000" },
    files: { type: "string", default: "500" },
    json: { type: "string" },
  },
});
const [rounds, starts, files] = [values.rounds, values.starts, values.files].map(Number);
if ([rounds, starts, files].some((each) => !Number.isInteger(each) || (each ?? 0) < 1))
  throw new Error("--rounds, --starts and --files take whole numbers from 1");

const folder = mkdtempSync(join(tmpdir(), "substrate-bench-"));
const project = join(folder, "project");
mkdirSync(project);
const { LinuxBackend, DIRECT } = await bundledWorlds(folder);
const backends = { off: backend({ listener: false }), on: backend({ listener: true }) };
try {
  const worlds = { off: await world("off"), on: await world("on") };
  writeProject(files ?? 1);
  const loop = `i=0; while [ $i -lt ${starts} ]; do /bin/true; i=$((i+1)); done`;
  const loops = await measure({
    off: () => inWorld(worlds.off, ["/bin/sh", "-c", loop], undefined),
    told: () => inWorld(worlds.on, ["/bin/sh", "-c", loop], { all: false }),
    asked: () => inWorld(worlds.on, ["/bin/sh", "-c", loop], { all: true }),
  });
  const make = ["/bin/sh", "-c", "make -s clean && make -s -j2"];
  const types = ["node", join(CHECKOUT, "node_modules/typescript/bin/tsc"), "--noEmit", "-p", CHECKOUT];
  const builds = await measure({
    "make, host": () => onHost(make),
    "make, world": () => inWorld(worlds.on, make, { all: false }),
    "make, world, asked": () => inWorld(worlds.on, make, { all: true }),
    "types, host": () => onHost(types),
    "types, world": () => inWorld(worlds.on, types, { all: false }),
  });
  const ratios = {
    "loop: told ÷ off": ratio(loops, "told", "off"),
    "loop: asked ÷ off": ratio(loops, "asked", "off"),
    "make: world ÷ host": ratio(builds, "make, world", "make, host"),
    "make: world, asked ÷ host": ratio(builds, "make, world, asked", "make, host"),
    "types: world ÷ host": ratio(builds, "types, world", "types, host"),
  };
  const result = { rounds, starts, files, node: process.version, summary: { ...loops, ...builds }, ratios };
  for (const [name, { median_ms, p99_ms }] of Object.entries(result.summary))
    console.log(`${name.padEnd(20)} median ${median_ms} ms, p99 ${p99_ms} ms`);
  for (const [name, value] of Object.entries(ratios)) console.log(`${name.padEnd(28)} ${value}`);
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(result, null, 2)}\n`);
} finally {
  await Promise.all(Object.values(backends).map((each) => each.close()));
  rmSync(folder, { recursive: true, force: true });
}

/** @param {Record<string, () => Promise<void>>} ways */
async function measure(ways) {
  await inTurn(ways, 1);
  const times = await inTurn(ways, rounds ?? 1);
  return Object.fromEntries(Object.entries(times).map(([name, all]) => [name, summarise(all)]));
}

/** @param {Record<string, { median_ms: number }>} summary @param {string} one @param {string} other */
function ratio(summary, one, other) {
  return round3((summary[one]?.median_ms ?? Number.NaN) / (summary[other]?.median_ms ?? Number.NaN));
}

/** One process has one row of cgroup names, and here are two backends. @param {{ listener: boolean }} how */
function backend({ listener }) {
  return new LinuxBackend({
    init: join(CHECKOUT, ".build/substrate-init"),
    uid: process.getuid?.() ?? 0,
    gid: process.getgid?.() ?? 0,
    strays: join(folder, "strays"),
    quarantine: join(folder, "quarantine"),
    launcher: {
      ...DIRECT,
      cgroupRefusal: "two backends would use the same names",
      launch: (id, plan, signal) =>
        DIRECT.launch(id, listener ? plan : { ...plan, recordFilter: undefined }, signal),
    },
  });
}

/** @param {"off" | "on"} which */
function world(which) {
  const scope = { read: ["/**"], denyRead: [], write: [`${project}/**`], denyWrite: [], seal: [] };
  const rest = { hidden: [], sealed: [], limits: {}, network: { ports: [], ranges: [] } };
  return backends[which].start(
    `wld_${which}`,
    {
      project,
      identity: "x",
      access: { kind: "direct" },
      files: scope,
      seccomp: "enforce",
      ...rest,
    },
    AbortSignal.timeout(20_000),
  );
}

/**
 * @param {import("../../world/backend.ts").World} where @param {string[]} argv
 * @param {{ all: boolean } | undefined} gate
 */
async function inWorld(where, argv, gate) {
  let said = "";
  /** @type {import("../../world/backend.ts").ExecRequest} */
  const request = {
    argv,
    cwd: project,
    env: { PATH, HOME: folder },
    stdin: undefined,
    background: "kill",
    window: 1 << 20,
    onOutput: (_stream, bytes) => {
      said += Buffer.from(bytes).toString();
    },
    onViolation: () => undefined,
    ...(gate === undefined
      ? {}
      : { onPrograms: () => undefined, gate: { names: NAMES, refuses: true, decide: () => true, ...gate } }),
  };
  const ending = await where.exec(request).ending;
  if (ending.kind !== "exited" || ending.code !== 0)
    throw new Error(`${argv.join(" ")} ended with ${JSON.stringify(ending)}: ${said}`);
}

/** @param {string[]} argv @returns {Promise<void>} */
function onHost([program = "", ...words]) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, words, {
      cwd: project,
      env: { PATH, HOME: folder },
      stdio: ["ignore", "ignore", "inherit"],
    });
    child.once("error", reject);
    child.once("close", (code) =>
      code === 0 ? resolve() : reject(new Error(`${program} ended with ${code}`)),
    );
  });
}

/** A C project of that many files, none of which needs another. @param {number} count */
function writeProject(count) {
  for (let each = 0; each < count; each += 1)
    writeFileSync(join(project, `f${each}.c`), `int f${each}(int x) { return x * ${each} + 1; }\n`);
  const objects = Array.from({ length: count }, (_, each) => `f${each}.o`).join(" ");
  const rules = `all.a: ${objects}\n\tar rcs $@ ${objects}\n%.o: %.c\n\t$(CC) -c -O1 -o $@ $<\nclean:\n\trm -f *.o all.a\n`;
  writeFileSync(join(project, "Makefile"), `CC = gcc\n${rules}`);
}
