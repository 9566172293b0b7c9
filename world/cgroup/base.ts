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

/** Rounds of moving the broker's children: a child that is just born may be missed once. */
const MOVE_TRIES = 3;

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

/**
 * Enables controllers in the broker's own cgroup. Such a cgroup may hold no processes, so the broker and its children (nft, git, npm at
 * the start) move into a leaf; not if strangers are there, whose cgroup it is too.
 */
function delegated(folder: string, pid: number): readonly Controller[] {
  if (!CONTROLLERS.some((controller) => words(folder, "cgroup.controllers").includes(controller))) return [];
  if (!words(folder, "cgroup.procs").every((other) => isBelow(Number(other), pid))) return [];
  make(join(folder, LEAF));
  // The broker first: from then on its children are born in the leaf.
  moveTo(join(folder, LEAF), String(pid));
  for (let tries = 0; tries < MOVE_TRIES; tries += 1)
    for (const each of words(folder, "cgroup.procs")) moveTo(join(folder, LEAF), each);
  return enable(folder, CONTROLLERS);
}

function moveTo(leaf: string, pid: string): void {
  try {
    put(leaf, "cgroup.procs", pid);
  } catch (error) {
    // The process has ended.
    if (errnoOf(error) !== "ESRCH") throw error;
  }
}

/** Whether a process is the broker or descends from the broker; an ended process counts as well. */
function isBelow(pid: number, broker: number): boolean {
  for (let at = pid; at > 0; at = parentOf(at) ?? broker) if (at === broker) return true;
  return false;
}

/** Field 4 of `/proc/PID/stat` (proc(5)); undefined for an ended process. */
function parentOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
  } catch (error) {
    if (errnoOf(error) === "ENOENT" || errnoOf(error) === "ESRCH") return undefined;
    throw error;
  }
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
