/**
 * Finds where this broker may make cgroups, and with which controllers, by making a cgroup and enabling each controller: the name
 * of a distribution tells neither.
 */
import { mkdirSync, readFileSync, rmdirSync } from "node:fs";
import { basename, join } from "node:path";
import { CONTROLLERS, type Controller, enable, errnoOf, has, put, words } from "./files.ts";
import { folderOf, ownGroup, type UnifiedMount, unifiedMount } from "./where.ts";

export type CgroupBase =
  | { readonly kind: "usable"; readonly folder: string; readonly controllers: readonly Controller[] }
  | { readonly kind: "off"; readonly why: string };

/** The host's state; replaced in tests. */
export type CgroupHost = {
  readonly mountinfo: string;
  readonly cgroups: string;
  readonly pid: number;
  /** Name of a trial cgroup, removed at once. */
  readonly trial: string;
};

/** Folder shared by all brokers that may write to the mounted root. */
export const SHARED = "substrate";

/** Retries when other brokers remove the folder at the same moment. */
const GONE_TRIES = 5;

/** The leaf for the broker itself, when its own cgroup gets controllers. */
const LEAF = "broker";

export function thisHost(trial: string): CgroupHost {
  return {
    mountinfo: readFileSync("/proc/self/mountinfo", "utf8"),
    cgroups: readFileSync("/proc/self/cgroup", "utf8"),
    pid: process.pid,
    trial,
  };
}

/** Returns the place with the most controllers: the broker's own cgroup if delegated, otherwise a cgroup below the root. */
export function findBase(host: CgroupHost): CgroupBase {
  const mount = unifiedMount(host.mountinfo);
  if (mount === undefined) return { kind: "off", why: "cgroup v2 is not mounted here" };
  const own = ownBase(mount, host);
  if (own.kind === "usable" && own.controllers.length === CONTROLLERS.length) return own;
  const shared = attempt(join(mount.folder, SHARED), () => whileItGoes(() => sharedBase(mount, host.trial)));
  if (shared.kind === "off") return own.kind === "off" ? { kind: "off", why: reasons(own, shared) } : own;
  return own.kind === "usable" && own.controllers.length >= shared.controllers.length ? own : shared;
}

function ownBase(mount: UnifiedMount, host: CgroupHost): CgroupBase {
  const group = ownGroup(host.cgroups);
  const folder = group === undefined ? undefined : folderOf(mount, group);
  if (folder === undefined) return { kind: "off", why: "the broker's own group is not visible" };
  if (folder === join(mount.folder, "/")) return { kind: "off", why: "" };
  return attempt(folder, () => {
    tryGroup(folder, host.trial);
    return delegated(folder, host.pid);
  });
}

/** Enables controllers in the broker's own cgroup. Such a cgroup may hold no processes, so the broker, if alone, moves into a leaf. */
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

/** Retries after ENOENT: a stopping broker removes the shared folder while empty, even if another broker is about to use the folder. */
function whileItGoes<Found>(work: () => Found, tries = GONE_TRIES): Found {
  try {
    return work();
  } catch (error) {
    if (tries === 0 || errnoOf(error) !== "ENOENT") throw error;
    return whileItGoes(work, tries - 1);
  }
}

/** Removes the shared folder if empty. The broker's own cgroup stays: the broker did not make it. */
export function dropBase(base: CgroupBase): void {
  if (base.kind === "off" || basename(base.folder) !== SHARED) return;
  try {
    rmdirSync(base.folder);
  } catch (error) {
    // Another broker uses the folder (EBUSY) or has removed it.
    if (!["EBUSY", "ENOTEMPTY", "ENOENT"].includes(errnoOf(error))) throw error;
  }
}

/** Makes and removes a trial cgroup: tests permissions, read-only mounts and limits on the number of cgroups. */
function tryGroup(folder: string, name: string): void {
  const trial = join(folder, name);
  mkdirSync(trial);
  const complete = has(trial, "cgroup.kill");
  rmdirSync(trial);
  if (!complete) throw new Error("cgroup.kill is missing (needs Linux 5.14)");
}

function make(folder: string): void {
  mkdirSync(folder, { recursive: true });
}

function attempt(folder: string, work: () => readonly Controller[]): CgroupBase {
  try {
    return { kind: "usable", folder, controllers: work() };
  } catch (error) {
    return { kind: "off", why: `cannot make a group in '${folder}': ${errnoOf(error)}` };
  }
}

function reasons(...bases: readonly { readonly why: string }[]): string {
  return bases
    .map(({ why }) => why)
    .filter(Boolean)
    .join("; ");
}
