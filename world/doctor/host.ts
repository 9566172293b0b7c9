/** Checks the kernel, init, and the host's limits that a busy broker reaches. */
import { release } from "node:os";
import type { HostCheck, HostFinding } from "./face.ts";
import { setKernel } from "./kernel-settings.ts";
import { missing, ok, runProgram, type Trials, weaker } from "./trials.ts";

/** The first kernel with `mount_setattr(2)`, which has no substitute. */
const LEAST_KERNEL = [5, 12] as const;

export function basicChecks(trials: Trials): readonly HostCheck[] {
  return [
    {
      name: "kernel",
      what: "Linux 5.12 or newer",
      needed: true,
      run: () => Promise.resolve(kernel(release())),
    },
    {
      name: "init",
      what: "substrate-init, the first process of a world",
      needed: true,
      run: (signal) => init(trials, signal),
    },
  ];
}

export function limitChecks(trials: Trials): readonly HostCheck[] {
  return [
    {
      name: "inotify",
      what: "inotify: 8 more instances with 1024 watches",
      needed: false,
      run: (signal) => inotify(trials, signal),
    },
    {
      name: "pid-max",
      what: "a limit of process ids for each pid namespace",
      needed: false,
      run: (signal) => pidMax(trials, signal),
    },
  ];
}

export function kernel(version: string): HostFinding {
  const [major = 0, minor = 0] = version.split(".").map((part) => Number.parseInt(part, 10));
  const isEnough = major > LEAST_KERNEL[0] || (major === LEAST_KERNEL[0] && minor >= LEAST_KERNEL[1]);
  return isEnough ? ok(version) : missing(version, "# Use a distribution with Linux 5.12 or newer");
}

/** Starts init without arguments and channel: an immediate exit passes. */
async function init({ inits }: Trials, signal: AbortSignal): Promise<HostFinding> {
  const ended = await runProgram([inits.init], signal);
  if (ended.unstarted === undefined && ended.code !== null)
    return ok("started, and ended as it should without a broker");
  const noexec = `# '${inits.init}' must lie on a file system without noexec, built for this machine:`;
  return missing(`'${inits.init}': ${ended.unstarted ?? "ended by a signal"}`, noexec, "npm run build");
}

/** Kernel setting behind the failure of a probe's step. */
const INOTIFY: Readonly<Record<string, readonly [string, string]>> = {
  inotify_init: ["fs.inotify.max_user_instances", "1024"],
  inotify_add_watch: ["fs.inotify.max_user_watches", "524288"],
};

async function inotify(trials: Trials, signal: AbortSignal): Promise<HostFinding> {
  const tried = await trials.probe(["inotify"], signal);
  if (tried.ok) return ok(`added ${tried.words[1]} watches in ${tried.words[0]} instances`);
  const seen = `${tried.step} failed with ${tried.errno}`;
  const [name, value] = INOTIFY[tried.step] ?? [];
  if (name === undefined || value === undefined)
    return weaker(seen, "# Allow more open files: ulimit -n 4096");
  return weaker(`${seen}: this user has used up its limit`, ...setKernel(name, value, trials.inits.uid));
}

async function pidMax(trials: Trials, signal: AbortSignal): Promise<HostFinding> {
  const tried = await trials.probe(["pid-max"], signal);
  if (tried.ok) return ok("set one; the host's own limit stayed");
  const seen = `${tried.step} failed with ${tried.errno}: a world without a pids cgroup has only rlimits`;
  return weaker(seen, "# Use Linux 6.14 or newer, or cgroups with the pids controller");
}
