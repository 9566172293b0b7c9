import type { ContainerProgram } from "./program.ts";

/** Path of the host's tree inside a container. */
export const HOST_ROOT = "/host";

/** One world's container. */
export type Container = {
  readonly name: string;
  /** Owner of the container; brokers never touch the containers of another owner. */
  readonly owner: string;
  /** The `substrate-init` program, on the host. */
  readonly init: string;
  /** Host folder with the socket to which init connects. */
  readonly folder: string;
};

/** Differences between container runtimes. */
export interface ContainerRuntime {
  /** Name in the isolation vector, after `container:`. */
  readonly name: string;
  readonly program: ContainerProgram;
  /** Options of `run` specific to the runtime. */
  readonly options: readonly string[];
  /** Makes the root or image of containers; returns its arguments for `run`. */
  prepare(signal: AbortSignal): Promise<readonly string[]>;
  /** Returns init's output from a container that did not come up; empty if unknown. */
  complaint(folder: string): Promise<string>;
  /** Options required by `complaint`. */
  logOptions(folder: string): readonly string[];
}

/** Label with the owner of a container. */
export const OWNER_LABEL = "substrate.owner";

/** Returns the arguments that start init in a container. `root`: the result of `prepare`. */
export function runWords(
  runtime: ContainerRuntime,
  root: readonly string[],
  container: Container,
): readonly string[] {
  return [
    "run",
    "--detach",
    "--rm",
    `--name=${container.name}`,
    `--label=${OWNER_LABEL}=${container.owner}`,
    // No network from the runtime: init makes a network with only `lo`.
    "--network=none",
    "--read-only",
    `--volume=/:${HOST_ROOT}`,
    "--workdir=/",
    "--cap-drop=all",
    // The runtime's own filters refuse calls needed to make a world. Init loads its filter before any command runs, and drops
    // every capability.
    "--security-opt=seccomp=unconfined",
    "--security-opt=apparmor=unconfined",
    "--security-opt=label=disable",
    ...runtime.options,
    ...runtime.logOptions(container.folder),
    ...root,
    `${HOST_ROOT}${container.init}`,
    HOST_ROOT,
    `${HOST_ROOT}${container.folder}`,
  ];
}

/** Capabilities of root's init until it drops all; a user namespace would not add any. */
export const ROOT_CAPABILITIES = [
  ["SYS_ADMIN", "the namespaces and mounts of a world"],
  ["NET_ADMIN", "its loopback device"],
  ["SETPCAP", "emptying the bounding set"],
  ["DAC_OVERRIDE", "folders of other users on the way, as for root anywhere"],
  ["DAC_READ_SEARCH", "PID 1 keeps it, unused, for masking a denied name that appears later"],
  ["CHOWN", "an overlay copies a file up with its owner"],
  ["FOWNER", "and with its mode and times"],
  ["FSETID", "and with its set-group-id bit, which nothing honours"],
] as const;

/** Capabilities of an ordinary user's init, started by the runtime's root. They end with entering its user namespace. */
export const CHANGING_USER_CAPABILITIES = [
  ["SYS_ADMIN", "a user namespace where others may not make one"],
  ["SETUID", "becoming the caller"],
  ["SETGID", "with the caller's group"],
  ["DAC_OVERRIDE", "the broker's folder, which only the caller may enter"],
] as const;

export function addCapabilities(table: readonly (readonly [string, string])[]): readonly string[] {
  return table.map(([name]) => `--cap-add=${name}`);
}
