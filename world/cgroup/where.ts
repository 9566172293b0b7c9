/** Parses the kernel's files about cgroups. Pure. */
import { join } from "node:path";

/** The mount point of cgroup v2, and the cgroup mounted there. */
export type UnifiedMount = { readonly folder: string; readonly root: string };

/** Returns the first cgroup v2 mount in the text of `/proc/self/mountinfo` (proc(5)); hybrid hosts have v1 mounts as well. */
export function unifiedMount(mountinfo: string): UnifiedMount | undefined {
  for (const line of mountinfo.split("\n")) {
    const [left = "", right = ""] = line.split(" - ");
    const [, , , root, folder] = left.split(" ");
    if (right.split(" ")[0] !== "cgroup2" || root === undefined || folder === undefined) continue;
    return { folder: unescaped(folder), root: unescaped(root) };
  }
  return undefined;
}

/** Returns this process's own cgroup from the text of `/proc/self/cgroup`: the line of hierarchy 0 is v2's. */
export function ownGroup(cgroups: string): string | undefined {
  const line = cgroups.split("\n").find((text) => text.startsWith("0::"));
  return line?.slice("0::".length);
}

/** Returns the folder of a cgroup; undefined outside the mount (seen from another cgroup namespace). */
export function folderOf(mount: UnifiedMount, group: string): string | undefined {
  if (group.includes("/..")) return undefined;
  if (mount.root === "/") return join(mount.folder, group);
  if (group !== mount.root && !group.startsWith(`${mount.root}/`)) return undefined;
  return join(mount.folder, group.slice(mount.root.length));
}

/** Whether a kernel's release (`6.18.44-generic`) is at least a version. */
export function isKernelAtLeast(release: string, major: number, minor: number): boolean {
  const [, first, second] = /^(\d+)\.(\d+)/.exec(release) ?? [];
  if (first === undefined || second === undefined) return false;
  return Number(first) > major || (Number(first) === major && Number(second) >= minor);
}

/** Returns field 22 of `/proc/PID/stat`, in clock ticks since boot. The name in field 2 may contain spaces and brackets. */
export function startTime(stat: string): string | undefined {
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
}

/** Decodes the octal escapes of mountinfo: space, tab, newline and backslash. */
function unescaped(path: string): string {
  return path.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
