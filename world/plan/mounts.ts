/**
 * From a world's spec to its mount plan. Pure: facts about the host come in as a function, so that every
 * plan can be tested as data, without root and without a mount.
 */
import { basename, join } from "node:path";
import type { WorldSpec } from "../backend.ts";
import type { MountOperation } from "./operations.ts";
import {
  isPrivate,
  isReadable,
  isWithin,
  isWritable,
  PRIVATE,
  readsEverything,
  shallowFirst,
  withoutStars,
} from "./scopes.ts";

/** What stands at a host path. `symlinked`: a symbolic link somewhere on the way there. */
export type PathKind = "file" | "folder" | "other" | "missing" | "symlinked";

export type HostFacts = {
  /** What stands at an absolute host path, looked at without following links. */
  readonly kind: (path: string) => PathKind;
  /** Where a symlinked path leads; undefined where it leads nowhere. */
  readonly real: (path: string) => string | undefined;
  /** Overlay marks must be `user.` xattrs (true in a user namespace). */
  readonly userxattr: boolean;
};

/** Device nodes that cannot reach hardware, other programs' memory or the kernel's log. */
const DEVICES = ["null", "zero", "full", "random", "urandom", "tty"] as const;

/** Parts of a fresh procfs that act on the whole machine: uid 0 may write them without any capability. */
const PROC_SEALED = ["sys", "sysrq-trigger", "irq", "bus", "fs", "dynamic_debug", "mtrr"] as const;

/** Parts of procfs and sysfs that show the machine's memory, keys and firmware. */
const MASKED = [
  "/proc/kcore",
  "/proc/keys",
  "/proc/key-users",
  "/proc/kmsg",
  "/proc/kallsyms",
  "/proc/timer_list",
  "/proc/sched_debug",
  "/proc/acpi",
  "/proc/scsi",
  "/sys/firmware",
  "/sys/kernel/debug",
  "/sys/kernel/tracing",
  "/sys/kernel/security",
] as const;

/**
 * Returns the operations in the order they must be applied. The order is the security argument:
 * the read-only host first, then what is private, then what is writable from shallow to deep, then the
 * project, and what takes away (sealed, denied, hidden) last so that nothing opened later uncovers it.
 */
export function mountPlan(spec: WorldSpec, facts: HostFacts): readonly MountOperation[] {
  return [
    ...hostTrees(spec, facts),
    ...devices(),
    ...processes(facts),
    ...privateFolders(spec, facts),
    ...writablePaths(spec, facts, (path) => !isWithin(path, spec.project)),
    ...project(spec, facts),
    ...writablePaths(spec, facts, (path) => isWithin(path, spec.project)),
    ...pinned(spec, facts),
    ...sealed(spec, facts),
    ...denied(spec, facts),
    ...hidden(spec, facts),
  ];
}

function hostTrees(spec: WorldSpec, facts: HostFacts): MountOperation[] {
  if (readsEverything(spec)) return [{ op: "root" }];
  // A bare folder name gives nothing below it to read, as it gives nothing to write.
  const named = spec.files.read.filter((path) => path.endsWith("/**") || facts.kind(path) !== "folder");
  const roots = shallowFirst(named.map(withoutStars));
  return [
    { op: "tmpfs", target: "/", options: "mode=755" },
    ...["/dev", "/proc", ...PRIVATE].map((target) => ({ op: "dir", target, mode: "755" }) as const),
    ...roots.flatMap((path) => bindInPlace(path, "ro", facts, true)),
  ];
}

function devices(): MountOperation[] {
  return [
    { op: "tmpfs", target: "/dev", options: "mode=755,size=64k" },
    ...DEVICES.map((name) => ({ op: "device", name }) as const),
    { op: "dir", target: "/dev/pts", mode: "755" },
    { op: "devpts", target: "/dev/pts" },
    { op: "symlink", text: "pts/ptmx", target: "/dev/ptmx" },
    { op: "symlink", text: "/proc/self/fd", target: "/dev/fd" },
    { op: "symlink", text: "/proc/self/fd/0", target: "/dev/stdin" },
    { op: "symlink", text: "/proc/self/fd/1", target: "/dev/stdout" },
    { op: "symlink", text: "/proc/self/fd/2", target: "/dev/stderr" },
    { op: "dir", target: "/dev/shm", mode: "1777" },
    { op: "tmpfs", target: "/dev/shm", options: "mode=1777,size=50%" },
  ];
}

function processes(facts: HostFacts): MountOperation[] {
  const seals = PROC_SEALED.map((name) => join("/proc", name)).filter((path) => exists(path, facts));
  const masks = MASKED.filter((path) => exists(path, facts));
  return [
    { op: "proc", target: "/proc" },
    ...seals.map((target) => ({ op: "readonly", target }) as const),
    ...masks.map((target) => ({ op: "mask", target }) as const),
  ];
}

function privateFolders(spec: WorldSpec, facts: HostFacts): MountOperation[] {
  const present = readsEverything(spec)
    ? PRIVATE.filter((path) => facts.kind(path) === "folder")
    : [...PRIVATE];
  return present.map((target) => ({
    op: "tmpfs",
    target,
    options: target === "/run" ? "mode=755,size=10%" : "mode=1777,size=50%",
  }));
}

/**
 * None for an overlay: a command whose changes are to be held may not make others elsewhere that are not.
 */
function writablePaths(
  spec: WorldSpec,
  facts: HostFacts,
  chosen: (path: string) => boolean,
): MountOperation[] {
  if (spec.access.kind === "overlay") return [];
  return shallowFirst(spec.files.write)
    .filter((path) => withoutStars(path) !== spec.project && chosen(withoutStars(path)))
    .filter((path) => isWithin(path, spec.project) || !isPrivate(withoutStars(path)))
    .filter((path) => mayBeWritable(path, facts))
    .flatMap((path) => bindInPlace(withoutStars(path), "rw", facts, false));
}

/**
 * A bare folder name allows no writes below it, and a path with a link on its way could be led elsewhere by
 * whoever may write the link: neither is bound, which is the stricter reading.
 */
function mayBeWritable(path: string, facts: HostFacts): boolean {
  const kind = facts.kind(withoutStars(path));
  return path.endsWith("/**") ? kind === "folder" : kind === "file";
}

/** A project that may be neither read nor written is not there: its commands cannot enter it, and are told so. */
function project(spec: WorldSpec, facts: HostFacts): MountOperation[] {
  if (!isReadable(spec.project, spec)) return [];
  const below = isPrivate(spec.project) || !readsEverything(spec);
  const place: MountOperation[] = below ? [{ op: "dir", target: spec.project, mode: "755" }] : [];
  if (spec.access.kind === "overlay") return [...place, overlay(spec.project, spec.access.layers, facts)];
  const access = isWritable(spec.project, spec) ? "rw" : "ro";
  return [...place, { op: "bind", source: spec.project, target: spec.project, access }];
}

function overlay(path: string, layers: string, facts: HostFacts): MountOperation {
  return {
    op: "overlay",
    lower: path,
    upper: join(layers, "upper"),
    work: join(layers, "work"),
    target: path,
    userxattr: facts.userxattr,
  };
}

/**
 * A folder above what is taken away could be renamed, and another one put in its place. So each is bound onto itself:
 * the kernel does not rename a mount point (EBUSY). In an overlay that is not needed: a rename there is held too.
 */
function pinned(spec: WorldSpec, facts: HostFacts): MountOperation[] {
  if (spec.access.kind === "overlay") return [];
  const taken = [...spec.sealed, ...spec.hidden, ...spec.files.denyWrite, ...spec.files.denyRead];
  const above = present(taken, facts).flatMap((path) => foldersAbove(path));
  return shallowFirst(above)
    .filter(
      (path) => path !== spec.project && !spec.files.write.includes(`${path}/**`) && isWritable(path, spec),
    )
    .map((path) => ({ op: "bind", source: path, target: path, access: "rw" }));
}

function foldersAbove(path: string): readonly string[] {
  const parts = path.split("/").slice(1, -1);
  return parts.map((_part, at) => `/${parts.slice(0, at + 1).join("/")}`);
}

function sealed(spec: WorldSpec, facts: HostFacts): MountOperation[] {
  return present(spec.sealed, facts)
    .filter((path) => isWritable(path, spec))
    .map((target) => ({ op: "readonly", target }));
}

function denied(spec: WorldSpec, facts: HostFacts): MountOperation[] {
  const writes = present(spec.files.denyWrite, facts).filter((path) => isWritable(path, spec));
  const reads = present(spec.files.denyRead, facts);
  return [
    ...writes.map((target) => ({ op: "readonly", target }) as const),
    ...reads.map((target) => ({ op: "mask", target }) as const),
  ];
}

function hidden(spec: WorldSpec, facts: HostFacts): MountOperation[] {
  return present(spec.hidden, facts).map((target) => ({ op: "mask", target }));
}

/** The existing places that a list of paths names, each where its links lead. */
function present(paths: readonly string[], facts: HostFacts): readonly string[] {
  const real = paths.map((path) => facts.real(withoutStars(path)));
  return shallowFirst(real.filter((path) => path !== undefined));
}

function bindInPlace(path: string, access: "rw" | "ro", facts: HostFacts, create: boolean): MountOperation[] {
  const kind = facts.kind(path);
  if (kind === "missing" || kind === "other") return [];
  if (kind === "symlinked") return create ? linkInPlace(path, facts) : [];
  const bind = { op: "bind", source: path, target: path, access } as const;
  if (!create) return [bind];
  return [kind === "folder" ? { op: "dir", target: path, mode: "755" } : { op: "file", target: path }, bind];
}

/** A readable path that is a link (`/bin` on merged systems) stays the same link inside. */
function linkInPlace(path: string, facts: HostFacts): MountOperation[] {
  const real = facts.real(path);
  if (real === undefined || basename(path) === "") return [];
  return [{ op: "symlink", text: real, target: path }];
}

function exists(path: string, facts: HostFacts): boolean {
  const kind = facts.kind(path);
  return kind !== "missing" && kind !== "symlinked";
}
