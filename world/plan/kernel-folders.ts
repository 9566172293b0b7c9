/** Plans the world's own folders, independent of its policy: devices, processes, private folders. Pure. */
import { join } from "node:path";
import type { WorldSpec } from "../model/world.ts";
import type { HostFacts } from "./host-facts.ts";
import type { MountOperation } from "./operations.ts";
import { roomOf } from "./room.ts";
import { PRIVATE, readsEverything } from "./scopes.ts";

/** Device nodes without access to hardware, to other programs' memory or to the kernel's log. */
const DEVICES = ["null", "zero", "full", "random", "urandom", "tty"] as const;

/**
 * Parts of a fresh procfs with effect on the whole machine: uid 0 may write them without any capability. So it may those of PID 1:
 * `oom_score_adj` would make it the first to die, before it has looked for denied names.
 */
const PROC_SEALED = ["1", "sys", "sysrq-trigger", "irq", "bus", "fs", "dynamic_debug", "mtrr"] as const;

/** Parts of procfs and sysfs that expose the machine's memory, keys and firmware. */
const MASKED = [
  "/proc/kcore",
  "/proc/keys",
  "/proc/key-users",
  "/proc/kmsg",
  "/proc/kallsyms",
  "/proc/timer_list",
  "/proc/slabinfo",
  "/proc/vmallocinfo",
  "/proc/pagetypeinfo",
  "/proc/kpagecount",
  "/proc/kpageflags",
  "/proc/kpagecgroup",
  "/proc/sched_debug",
  "/proc/acpi",
  "/proc/scsi",
  "/sys/firmware",
  "/sys/kernel/debug",
  "/sys/kernel/tracing",
  "/sys/kernel/security",
] as const;

export function devices(spec: WorldSpec): readonly MountOperation[] {
  return [
    { op: "tmpfs", target: "/dev", options: "mode=755,size=64k,nr_inodes=1k" },
    ...DEVICES.map((name) => ({ op: "device", name }) as const),
    { op: "dir", target: "/dev/pts", mode: "755" },
    { op: "devpts", target: "/dev/pts" },
    { op: "symlink", text: "pts/ptmx", target: "/dev/ptmx" },
    { op: "symlink", text: "/proc/self/fd", target: "/dev/fd" },
    { op: "symlink", text: "/proc/self/fd/0", target: "/dev/stdin" },
    { op: "symlink", text: "/proc/self/fd/1", target: "/dev/stdout" },
    { op: "symlink", text: "/proc/self/fd/2", target: "/dev/stderr" },
    { op: "dir", target: "/dev/shm", mode: "1777" },
    { op: "tmpfs", target: "/dev/shm", options: `mode=1777,${roomOf("/dev/shm", spec.limits.disk)}` },
    ...maskSources(),
  ];
}

/** Makes the unreadable file and folder that init binds over denied names, throughout the world's life (world/native/deny/denials.h). */
function maskSources(): readonly MountOperation[] {
  return [
    { op: "dir", target: "/dev/.denied", mode: "755" },
    { op: "tmpfs", target: "/dev/.denied", options: "mode=755,size=4k" },
    { op: "file", target: "/dev/.denied/file", mode: "0" },
    { op: "dir", target: "/dev/.denied/folder", mode: "0" },
    { op: "readonly", target: "/dev/.denied" },
  ];
}

export function processes(facts: HostFacts): readonly MountOperation[] {
  const seals = PROC_SEALED.map((name) => join("/proc", name)).filter((path) => exists(path, facts));
  const masks = MASKED.filter((path) => exists(path, facts));
  return [
    { op: "proc", target: "/proc" },
    ...seals.map((target) => ({ op: "readonly", target }) as const),
    ...masks.map((target) => ({ op: "mask", target }) as const),
  ];
}

export function privateFolders(spec: WorldSpec, facts: HostFacts): readonly MountOperation[] {
  const present = readsEverything(spec)
    ? PRIVATE.filter((path) => facts.kind(path) === "folder")
    : [...PRIVATE];
  return present.map((target) => ({
    op: "tmpfs",
    target,
    options: `mode=${target === "/run" ? "755" : "1777"},${roomOf(target, spec.limits.disk)}`,
  }));
}

function exists(path: string, facts: HostFacts): boolean {
  const kind = facts.kind(path);
  return kind !== "missing" && kind !== "symlinked";
}
