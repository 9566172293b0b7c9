import type { ContainerProgram } from "./program.ts";

/** Where the host's tree stands inside a container. */
export const HOST_ROOT = "/host";

/** One world's container. */
export type Container = {
  readonly name: string;
  /** Says whose it is; two brokers never take each other's. */
  readonly owner: string;
  /** The `substrate-init` program, on the host. */
  readonly init: string;
  /** Holds the socket that init connects to, on the host. */
  readonly folder: string;
};

/** What differs from one container runtime to another. */
export interface ContainerRuntime {
  /** As it stands in the isolation vector, after `container:`. */
  readonly name: string;
  readonly program: ContainerProgram;
  /** Options of `run` beyond those of every runtime. */
  readonly options: readonly string[];
  /** Makes what a container starts from, and returns how `run` names it. */
  prepare(signal: AbortSignal): Promise<readonly string[]>;
  /** What init said in a container that did not come up; empty when that cannot be known. */
  complaint(folder: string): Promise<string>;
  /** Options that make `complaint` possible. */
  logOptions(folder: string): readonly string[];
}

/** The label that says whose containers they are. */
export const OWNER_LABEL = "substrate.owner";

/** The words after the program's own for starting init in a container. `root` is what `prepare` returned. */
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
    // Nothing of the runtime's network: init makes one with only `lo`.
    "--network=none",
    "--read-only",
    `--volume=/:${HOST_ROOT}`,
    "--workdir=/",
    "--cap-drop=all",
    // The runtime's own filters refuse what makes a world. Init loads its filter before any command runs, and drops every capability.
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

/** What root's init needs until it drops all of it: no user namespace gives it more. */
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

/** What the init of an ordinary user needs where the runtime's root starts it. Its user namespace ends them all. */
export const CHANGING_USER_CAPABILITIES = [
  ["SYS_ADMIN", "a user namespace where others may not make one"],
  ["SETUID", "becoming the caller"],
  ["SETGID", "with the caller's group"],
  ["DAC_OVERRIDE", "the broker's folder, which only the caller may enter"],
] as const;

export function addCapabilities(table: readonly (readonly [string, string])[]): readonly string[] {
  return table.map(([name]) => `--cap-add=${name}`);
}
