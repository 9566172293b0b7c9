import type { HostCheck, HostFinding } from "./face.ts";
import { LaunchFailed } from "../linux/launch.ts";
import { ALWAYS, type NamespaceName } from "../linux/namespaces.ts";
import { missing, ok, type Trials, wordsOf } from "./trials.ts";

const WORDS: Readonly<Record<NamespaceName, string>> = {
  mount: "mount namespace with its own procfs",
  pid: "pid namespace whose processes end with its first process",
  net: "network namespace with its own loopback",
  ipc: "ipc namespace",
  uts: "uts namespace",
  user: "user namespace",
};

/** Returns one check per namespace of a world. Mount and pid namespaces are always made together. */
export function namespaceChecks(trials: Trials): readonly HostCheck[] {
  return ALWAYS.map((name) => ({
    name: `${name}-namespace`,
    what: WORDS[name],
    needed: true,
    run: (signal) => run(trials, name, signal),
  }));
}

async function run(trials: Trials, name: NamespaceName, signal: AbortSignal): Promise<HostFinding> {
  try {
    await trials.launchAsUsual(name === "mount" || name === "pid" ? [] : [name], [], signal);
    return ok("made one; init started in it");
  } catch (error) {
    return missing(wordsOf(error), ...mendOf(error, name));
  }
}

function mendOf(error: unknown, name: NamespaceName): readonly string[] {
  if (!(error instanceof LaunchFailed)) return ["npm run build"];
  if (error.step === "unshare user") return ["# The same as for user namespaces, above"];
  if (error.step === "staging proc") {
    return [
      "# A container hides parts of /proc, so the kernel refuses a new procfs; start the container with:",
      "docker run --security-opt systempaths=unconfined …",
      "podman run --security-opt unmask=ALL …",
    ];
  }
  if (error.errno === "EINVAL") return [`# Use a kernel with CONFIG_${name.toUpperCase()}_NS=y`];
  if (error.errno === "ENOSPC")
    return [`sudo sysctl -w user.max_${name === "mount" ? "mnt" : name}_namespaces=15000`];
  return [
    "# Allow it where this container or service is started: CAP_SYS_ADMIN, no seccomp filter on unshare(2)",
  ];
}
