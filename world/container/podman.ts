import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { makeEmptyRoot } from "./empty-root.ts";
import { addCapabilities, type ContainerRuntime, ROOT_CAPABILITIES } from "./runtime.ts";

export type PodmanOptions = {
  readonly environment: Readonly<Record<string, string>>;
  readonly uid: number;
  /** A folder of the broker's, for the containers' root. */
  readonly folder: string;
  /** The OCI runtime to use instead of podman's choice. */
  readonly ociRuntime?: string;
};

/**
 * Configures podman, which has no daemon and runs as the caller. For an ordinary user podman makes the user namespace with
 * newuidmap, perhaps allowed to podman but not to the broker; init then makes its own namespace below.
 */
export function podman(options: PodmanOptions): ContainerRuntime {
  const { environment, uid, ociRuntime } = options;
  return {
    name: ociRuntime === undefined ? "podman" : `podman:${ociRuntime}`,
    program: {
      words: ociRuntime === undefined ? ["podman"] : ["podman", `--runtime=${ociRuntime}`],
      environment,
      hint: "Install podman and uidmap, and see that 'podman info' works for this user",
    },
    options: [
      "--read-only-tmpfs=false",
      "--pids-limit=-1",
      ...(uid === 0 ? [...rootLimits(), ...addCapabilities(ROOT_CAPABILITIES)] : ["--userns=keep-id"]),
    ],
    prepare: async () => {
      const root = join(options.folder, "root");
      await makeEmptyRoot(root);
      return ["--rootfs", root];
    },
    logOptions: (folder) => ["--log-driver=k8s-file", `--log-opt=path=${logOf(folder)}`],
    complaint: async (folder) => saidIn(await readFile(logOf(folder), "utf8").catch(() => "")),
  };
}

/** Keeps the broker's limits: root's podman raises them far above, which fails without CAP_SYS_RESOURCE. */
function rootLimits(): readonly string[] {
  const limits = readFileSync("/proc/self/limits", "utf8");
  const files = hardLimit(limits, "Max open files");
  // podman first lowers its own limit to the highest pid.
  const processes = Math.min(
    hardLimit(limits, "Max processes"),
    Number(readFileSync("/proc/sys/kernel/pid_max", "utf8")),
  );
  return [`--ulimit=nofile=${files}:${files}`, `--ulimit=nproc=${processes}:${processes}`];
}

/** Parses proc_pid_limits(5): columns name, soft, hard, unit. */
function hardLimit(limits: string, name: string): number {
  const hard = new RegExp(`^${name} +\\S+ +(\\S+)`, "m").exec(limits)?.[1];
  return hard === undefined || hard === "unlimited" ? Number.MAX_SAFE_INTEGER : Number(hard);
}

function logOf(folder: string): string {
  return join(folder, "said");
}

/** Extracts the text from lines of that log driver: time, stream, F or P, text. */
function saidIn(log: string): string {
  return log
    .split("\n")
    .map((line) => line.split(" ").slice(3).join(" "))
    .filter((line) => line !== "")
    .join(" ");
}
