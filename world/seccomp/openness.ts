/** Decides how far `world.namespaces: allow` opens a world, and says why not further. Pure. */
import type { WorldSpec, WorldViolation } from "../model/world.ts";
import { type Hit, lowHalf } from "./hit.ts";
import { identifyCall } from "./numbers.ts";
import { NAMESPACES, type Openness } from "./table.ts";

/**
 * What a world lets its commands do with namespaces, or why nothing: `denied` by the policy; allowed without effect in `log` mode, in
 * `root`'s world, in a `container`; `namespaces` or `mounts`: as far as {@link Openness} says.
 */
export type NamespaceState = "denied" | "log" | "root" | "container" | "namespaces" | "mounts";

/** Facts about the world to be made. */
export type OpeningFacts = {
  /** Whether the world has a user namespace of its own; root's worlds have none. */
  readonly userNamespace: boolean;
  /** Whether init is a child of the broker. */
  readonly isDirect: boolean;
  /** Whether an overlay of a command shows no file below the world's mounts (Linux 5.14, CVE-2021-3732). */
  readonly overlayKeepsMasks: boolean;
};

/**
 * Returns the state of a world. Mount namespaces are left to isolated commands: where commands write to the host's own files, a
 * process that has detached its copy of the world's mounts is past every seal made later, such as the seal of settings that git
 * replaced. An overlay has no such files, and what is held is checked by name before it counts. A git folder outside of the
 * project is bound even for an isolated command.
 */
export function namespaceState(
  { namespaces, seccomp, access, gitFolder }: WorldSpec,
  { userNamespace, isDirect, overlayKeepsMasks }: OpeningFacts,
): NamespaceState {
  if (namespaces !== "allow") return "denied";
  if (seccomp === "log") return "log";
  if (!isDirect) return "container";
  if (!userNamespace) return "root";
  return access.kind === "overlay" && gitFolder === undefined && overlayKeepsMasks ? "mounts" : "namespaces";
}

export function opennessOf(state: NamespaceState): Openness {
  return state === "namespaces" || state === "mounts" ? state : "closed";
}

const KINDS = "process, network, IPC and host name namespaces";

/** What the isolation vector adds to its word about user namespaces. */
export const STATE_WORDS: Readonly<Record<NamespaceState, string | undefined>> = {
  denied: undefined,
  log: "world.namespaces: allow has no effect in log mode",
  root: "world.namespaces: allow has no effect: a root without capabilities can map no user into a namespace of its own (Linux 5.12)",
  container: "world.namespaces: allow has no effect in a container",
  namespaces: `commands may make user namespaces of their own, and ${KINDS} inside; mount namespaces only where isolated (world.namespaces: allow)`,
  mounts: `commands may make user namespaces of their own, and mount, ${KINDS} inside (world.namespaces: allow)`,
};

/** Describes a call by which a command tried to make a namespace, as reported by `substrate-init` outside log mode. */
export function namespaceViolation(hit: Hit, state: NamespaceState): WorldViolation {
  const identity = identifyCall(hit.number, hit.audit);
  const call = identity.kind === "known" ? identity.call : `${identity.interface}:${identity.number}`;
  const flags = lowHalf(hit, 0);
  const named = Object.entries(NAMESPACES).flatMap(([name, flag]) => ((flags & flag) === 0 ? [] : [name]));
  const message = `The system call ${call}(${named.join(" | ")}) was refused with EPERM: ${whyRefused(flags, state)}`;
  return { kind: "namespace", subject: call, message };
}

function whyRefused(flags: number, state: NamespaceState): string {
  switch (state) {
    case "denied":
      return "commands may not make namespaces. A program with a sandbox of its own (Chromium, bubblewrap) starts if the policy says 'world.namespaces: allow', or without its sandbox (Chromium: --no-sandbox)";
    case "log":
      return "'world.namespaces: allow' has no effect with 'world.seccomp: log'";
    case "root":
      return "'world.namespaces: allow' has no effect for a broker that runs as root, because a root without capabilities can map no user into a namespace of its own. Start the program without its sandbox, or the broker as an ordinary user";
    case "container":
      return "'world.namespaces: allow' has no effect where worlds are containers";
    case "namespaces":
    case "mounts":
      return state === "namespaces" && (flags & NAMESPACES.CLONE_NEWNS) !== 0 ? MOUNTS_ISOLATED : ONE_BY_ONE;
  }
}

const MOUNTS_ISOLATED =
  "'world.namespaces: allow' lets isolated commands alone make mount namespaces, because elsewhere a process could get past the seals of the project. Add the command to 'commands.isolated'; in a project whose git folder lies outside (a worktree) none may";

const ONE_BY_ONE =
  "'world.namespaces: allow' leaves cgroup and time namespaces refused. Name the wanted namespaces one by one (bubblewrap: --unshare-user --unshare-pid --unshare-net instead of --unshare-all)";
