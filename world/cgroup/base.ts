/**
 * Where this broker may make cgroups, and with which controllers: found out by making one and by enabling each, since
 * the name of a distribution says neither.
 */
import { mkdirSync, readFileSync, rmdirSync } from "node:fs";
import { basename, join } from "node:path";
import { CONTROLLERS, type Controller, enable, errnoOf, has, put, words } from "./files.ts";
import { folderOf, ownGroup, type UnifiedMount, unifiedMount } from "./where.ts";

export type CgroupBase =
  | { readonly kind: "usable"; readonly folder: string; readonly controllers: readonly Controller[] }
  | { readonly kind: "off"; readonly why: string };

/** What is asked of the host; a test gives its own. */
export type CgroupHost = {
  readonly mountinfo: string;
  readonly cgroups: string;
  readonly pid: number;
  /** A name for a group that is made to see whether one can be, and removed at once. */
  readonly trial: string;
};

/** Shared by all brokers that may write the mounted root. */
export const SHARED = "substrate";

/** How often it is made again when others remove it at the same moment. */
const GONE_TRIES = 5;

/** The leaf that the broker moves into when its own group gets controllers. */
const LEAF = "broker";

export function thisHost(trial: string): CgroupHost {
  return {
    mountinfo: readFileSync("/proc/self/mountinfo", "utf8"),
    cgroups: readFileSync("/proc/self/cgroup", "utf8"),
    pid: process.pid,
    trial,
  };
}

/** The place with the most controllers: the broker's own group if it was delegated, else one below the root. */
export function findBase(host: CgroupHost): CgroupBase {
  const mount = unifiedMount(host.mountinfo);
  if (mount === undefined) return { kind: "off", why: "no cgroup v2 is mounted here" };
  const own = ownBase(mount, host);
  if (own.kind === "usable" && own.controllers.length === CONTROLLERS.length) return own;
  const shared = attempt(join(mount.folder, SHARED), () => whileItGoes(() => sharedBase(mount, host.trial)));
  if (shared.kind === "off") return own.kind === "off" ? { kind: "off", why: reasons(own, shared) } : own;
  return own.kind === "usable" && own.controllers.length >= shared.controllers.length ? own : shared;
}

function ownBase(mount: UnifiedMount, host: CgroupHost): CgroupBase {
  const group = ownGroup(host.cgroups);
  const folder = group === undefined ? undefined : folderOf(mount, group);
  if (folder === undefined) return { kind: "off", why: "the broker's own group is not in view" };
  if (folder === join(mount.folder, "/")) return { kind: "off", why: "" };
  return attempt(folder, () => {
    tryGroup(folder, host.trial);
    return delegated(folder, host.pid);
  });
}

/** A group with controllers below it may hold no processes: the broker moves into a leaf, if it is alone. */
function delegated(folder: string, pid: number): readonly Controller[] {
  if (!CONTROLLERS.some((controller) => words(folder, "cgroup.controllers").includes(controller))) return [];
  const others = words(folder, "cgroup.procs").filter((other) => Number(other) !== pid);
  if (others.length > 0) return [];
  make(join(folder, LEAF));
  put(join(folder, LEAF), "cgroup.procs", String(pid));
  return enable(folder, CONTROLLERS);
}

function sharedBase(mount: UnifiedMount, trial: string): readonly Controller[] {
  const folder = join(mount.folder, SHARED);
  make(folder);
  tryGroup(folder, trial);
  return enable(folder, enable(mount.folder, CONTROLLERS));
}

/** A broker that stops removes the shared folder while nobody has a group in it, so also under whoever is about to. */
function whileItGoes<Found>(work: () => Found, tries = GONE_TRIES): Found {
  try {
    return work();
  } catch (error) {
    if (tries === 0 || errnoOf(error) !== "ENOENT") throw error;
    return whileItGoes(work, tries - 1);
  }
}

/** Removes the shared folder if nobody has a group in it. The broker's own group is not ours to remove. */
export function dropBase(base: CgroupBase): void {
  if (base.kind === "off" || basename(base.folder) !== SHARED) return;
  try {
    rmdirSync(base.folder);
  } catch (error) {
    // Another broker's groups are in it (EBUSY), or it has gone with another broker.
    if (!["EBUSY", "ENOTEMPTY", "ENOENT"].includes(errnoOf(error))) throw error;
  }
}

/** Made and removed again: permissions, read-only mounts and limits on groups all show here. */
function tryGroup(folder: string, name: string): void {
  const trial = join(folder, name);
  mkdirSync(trial);
  const complete = has(trial, "cgroup.kill");
  rmdirSync(trial);
  if (!complete) throw new Error("there is no cgroup.kill (Linux 5.14)");
}

function make(folder: string): void {
  mkdirSync(folder, { recursive: true });
}

function attempt(folder: string, work: () => readonly Controller[]): CgroupBase {
  try {
    return { kind: "usable", folder, controllers: work() };
  } catch (error) {
    return { kind: "off", why: `no group can be made in '${folder}': ${errnoOf(error)}` };
  }
}

function reasons(...bases: readonly { readonly why: string }[]): string {
  return bases
    .map(({ why }) => why)
    .filter(Boolean)
    .join("; ");
}
