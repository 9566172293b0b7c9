// Applying 30,000 created files ÷ `cp -a` of the same files, interleaved. Arguments: [files] [rounds].
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";
import { median, printLimits, shuffled, summarise } from "./numbers.mjs";

const [files = "30000", rounds = "5"] = process.argv.slice(2);
const root = fileURLToPath(new URL("../..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "sb-bench-apply-"));
/** @type {Record<"apply" | "undo" | "copy", number[]>} */
const times = { apply: [], undo: [], copy: [] };

try {
  await build({
    entryPoints: [join(root, "world/overlay/held-store.ts")],
    outfile: join(folder, "store.mjs"),
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    logLevel: "error",
  });
  const { LayerStore } = await import(pathToFileURL(join(folder, "store.mjs")).href);
  const store = new LayerStore(join(root, ".build/substrate-init"));
  const never = new AbortController().signal;
  const all = [];
  let upper = join(folder, "upper");
  makeFiles(join(upper, "made"), Number(files));
  // Nothing is removed before all is copied and applied: ext4 gives no inode again in the first seconds, and looks for
  // another one at each file.
  for (let round = 0; round < Number(rounds); round++) {
    const project = join(folder, `project-${round}`);
    const layers = join(folder, `overlay/spn_${round}`);
    mkdirSync(project);
    mkdirSync(layers, { recursive: true });
    renameSync(upper, join(layers, "upper"));
    upper = join(layers, "upper");
    const { dev, ino } = statSync(project);
    const held = { layers, project, identity: `${dev}:${ino}`, mountedAt: BigInt(Date.now()) * 1_000_000n };
    const ways = [
      () => timed("copy", () => copy(join(layers, "upper/made"), join(folder, `copy-${round}`))),
      () => timed("apply", async () => done(await store.apply(held, null, () => false, never))),
    ];
    for (const way of shuffled(ways, round)) await way();
    all.push(held);
  }
  for (const held of all) await timed("undo", async () => done(await store.undo(held, null, never)));
  for (const [way, list] of Object.entries(times)) {
    const { median_ms, p99_ms } = summarise(list);
    console.log(`${way.padEnd(6)} median ${median_ms} ms, p99 ${p99_ms} ms, ${list.length} rounds`);
  }
  const value = median(times.apply) / median(times.copy);
  process.exitCode = printLimits([
    { what: `apply of ${files} created files ÷ cp -a of the same`, value, limit: 2 },
  ])
    ? 0
    : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** @param {string} at @param {number} count */
function makeFiles(at, count) {
  for (let index = 0; index < count; index++) {
    const below = join(at, String(index % 300));
    if (index < 300) mkdirSync(below, { recursive: true });
    writeFileSync(join(below, `file-${index}.js`), `module.exports = ${index};\n`.repeat(1 + (index % 90)));
  }
}

/** @param {"apply" | "undo" | "copy"} name @param {() => unknown} work */
async function timed(name, work) {
  const started = performance.now();
  await work();
  const spent = performance.now() - started;
  times[name].push(spent);
  console.log(`${name} ${spent.toFixed(0)} ms`);
}

/** @param {string} from @param {string} to */
function copy(from, to) {
  if (spawnSync("cp", ["-a", from, to]).status !== 0) throw new Error("cp -a failed");
}

/** @param {{ kind: string }} ending */
function done(ending) {
  if (ending.kind !== "done") throw new Error(JSON.stringify(ending).slice(0, 500));
}
