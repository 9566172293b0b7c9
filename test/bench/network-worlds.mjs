/** Worlds made without a broker, so that one can be compared that has no network of ours at all. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundledWorlds } from "./bundled-worlds.mjs";

const CHECKOUT = fileURLToPath(new URL("../..", import.meta.url));
const PATIENCE_MS = 20_000;
const NAMES = { ports: [22, 80, 443], ranges: [{ cidr: "203.0.113.0/24", ports: [8443] }] };
const NOTHING = { ports: [], ranges: [] };

/** Ways to make a world; none waits for the end of those before. @param {string} folder */
export async function worldWays(folder) {
  const { LinuxBackend, DIRECT } = await bundledWorlds(folder);
  const options = {
    init: join(CHECKOUT, ".build/substrate-init"),
    uid: process.getuid?.() ?? 0,
    gid: process.getgid?.() ?? 0,
    strays: join(folder, "strays"),
    quarantine: join(folder, "quarantine"),
    // As a broker has it.
    spareNetwork: true,
  };
  const project = join(folder, "worlds-project");
  for (const path of [options.strays, options.quarantine, project]) mkdirSync(path);
  // One process has one row of cgroup names, and here are two backends.
  const launcher = { ...DIRECT, cgroupRefusal: "two backends would use the same names" };
  const backend = new LinuxBackend({ ...options, launcher });
  const alone = new LinuxBackend({
    ...options,
    launcher: { ...launcher, networkRefusal: "it is what the others are compared with" },
  });
  let made = 0;
  /** @param {InstanceType<typeof LinuxBackend>} by @param {{ ports: number[], ranges: { cidr: string, ports: number[] }[] }} network */
  const way = (by, network) => async () => {
    made += 1;
    const world = await by.start(
      `wld_bench_${made}`,
      specOf(project, network),
      AbortSignal.timeout(PATIENCE_MS),
    );
    ends.push(world.end("it is made"));
  };
  /** @type {Promise<void>[]} */
  const ends = [];
  const close = async () => {
    await Promise.all(ends);
    await Promise.all([backend.close(), alone.close()]);
  };
  return {
    ways: { names: way(backend, NAMES), nothing: way(backend, NOTHING), "no network": way(alone, NOTHING) },
    close,
  };
}

/** @param {string} project @param {import("../../world/backend.ts").NetworkRules} network @returns {import("../../world/backend.ts").WorldSpec} */
function specOf(project, network) {
  return {
    project,
    identity: "bench",
    access: { kind: "direct" },
    files: { read: ["/**"], denyRead: [], write: [project], denyWrite: [], seal: [] },
    hidden: [],
    sealed: [],
    limits: {},
    seccomp: "enforce",
    network,
  };
}
