import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { HostCheck, HostFinding } from "./face.ts";
import type { WorldBackend } from "../model/world.ts";
import { LaunchFailed } from "../linux/launch.ts";
import { assembleFilter } from "../seccomp/assemble.ts";
import { architectureOf } from "../seccomp/numbers.ts";
import { DENIED } from "../seccomp/table.ts";
import { runInside } from "./inside.ts";
import { MEND_ABOVE, missing, ok, type Trials, weaker, wordsOf } from "./trials.ts";

const NO_FILTERS =
  "# Use a kernel with CONFIG_SECCOMP_FILTER=y, outside of a container that forbids seccomp(2)";

export function seccompChecks(trials: Trials, backend: WorldBackend): readonly HostCheck[] {
  return [
    {
      name: "seccomp-filter",
      what: "seccomp filter that refuses system calls",
      needed: true,
      run: (signal) => tryFilter(trials, backend, signal),
    },
    {
      name: "seccomp-notify",
      what: "seccomp notification, to decide about single system calls",
      needed: false,
      run: (signal) => tryNotify(trials, signal),
    },
  ];
}

/** Checks that the kernel loads the filter, and then that the filter refuses a command a forbidden call. */
async function tryFilter(trials: Trials, backend: WorldBackend, signal: AbortSignal): Promise<HostFinding> {
  const project = await mkdtemp(join(tmpdir(), "substrate-probe-"));
  try {
    const user = (await trials.needsUserNamespace(signal)) ? (["user"] as const) : [];
    const filter = assembleFilter(DENIED, architectureOf(process.arch));
    await trials.launch([...user, "mount", "pid"], [], signal, filter);
    const script = "grep '^Seccomp:' /proc/self/status; unshare --user true";
    const { code, output } = await runInside(backend, project, { kind: "direct" }, script, signal);
    if (/^Seccomp:\s*2$/m.test(output) && code !== 0 && /not permitted/.test(output))
      return ok(`loaded ${filter.length / 8} instructions, and unshare(2) was refused with EPERM`);
    return missing(`loaded, but a command in a world still printed: ${output.trim()}`, NO_FILTERS);
  } catch (error) {
    const isFilter = error instanceof LaunchFailed && error.step === "seccomp";
    return missing(wordsOf(error), isFilter ? NO_FILTERS : MEND_ABOVE);
  } finally {
    await rm(project, { recursive: true, force: true });
  }
}

async function tryNotify(trials: Trials, signal: AbortSignal): Promise<HostFinding> {
  const tried = await trials.probe(["notify"], signal);
  if (!tried.ok) {
    const why = "this host cannot ask about execve inside worlds";
    return missing(`${tried.step} failed with ${tried.errno}: ${why}`, NO_FILTERS);
  }
  return tried.words[0] === "1"
    ? ok("another process answered a call")
    : weaker("another process answered a call, without WAIT_KILLABLE_RECV", "# Use Linux 5.19 or newer");
}
