import { accessSync, constants, lstatSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { hostname } from "node:os";
import { dirname } from "node:path";
import { WorldUnavailable } from "../model/unavailable.ts";
import { unlessScarce } from "./scarce.ts";
import { sshIncludes } from "./ssh-includes.ts";
import type { HostFacts, PathKind } from "../plan/host-facts.ts";
import { MountTable, parseMounts } from "../plan/mount-table.ts";
import { isPrivate } from "../plan/scopes.ts";

/**
 * File systems of sticks, cards and boot partitions: no mknod(2) and no bind(2) there. The kernel makes no overlay over them, because
 * their names have no case.
 */
const WITHOUT_PIPES: ReadonlySet<string> = new Set(["vfat", "msdos", "exfat"]);

/** Returns facts about the host. Facts about paths are read on demand and cached; mount table and sockets are read now. */
export function hostFacts(
  known: Pick<
    HostFacts,
    "found" | "unveilable" | "userNamespace" | "namesServed" | "layers" | "hostResolver"
  >,
): HostFacts {
  const looked = new Map<string, Looked>();
  const mounts = parseMounts(unlessScarce(() => readFileSync("/proc/self/mountinfo", "utf8")));
  const table = new MountTable(mounts);
  return {
    kind: (path) => look(path, looked).kind,
    real: (path) => look(path, looked).real,
    folders: foldersIn,
    listable: (path) => isListable(path),
    hostname: hostname(),
    ...(known.namesServed ? { hostsFile: hostsFile() } : {}),
    mountPoints: [...new Set(mounts.map(({ point }) => point))],
    otherNames: (path) => table.otherNames(path),
    reachesNoPipes: (path) =>
      WITHOUT_PIPES.has(mounts.findLast(({ point }) => point === path)?.type ?? "") || !isSearchable(path),
    datagramSockets: parseDatagramSockets(unlessScarce(() => readFileSync("/proc/net/unix", "utf8"))),
    ...(known.userNamespace ? { rootsOwn: sshIncludes(), keptByModes: keptByModes() } : {}),
    ...known,
  };
}

/** Returns the text of the host's resolv.conf if a link leads to a folder that is private to each world; otherwise undefined. */
export function linkedResolver(path = "/etc/resolv.conf"): string | undefined {
  try {
    return isPrivate(realpathSync(path)) ? readFileSync(path, "utf8") : undefined;
  } catch {
    // No file, ignoring: programs of the world find the same as the host's.
    return undefined;
  }
}

function hostsFile(path = "/etc/hosts"): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // No file, or not for this user, ignoring: the world has the names of its own.
    return "";
  }
}

/**
 * Returns the absolute paths bound to datagram sockets (type 2) in this network namespace; abstract sockets have no path.
 * Programs choose the text freely.
 */
export function parseDatagramSockets(table: string): readonly string[] {
  const paths = table
    .split("\n")
    .flatMap((line) => /^\S+: (?:\S+ ){3}0002 \S+ +\d+ (\/.*)$/.exec(line)?.[1] ?? []);
  return [...new Set(paths)];
}

/** shadow(5) and gshadow(5), with the copies that passwd(1) and its kin leave: modes 0640 or 0600, owned by root. */
const PASSWORD_HASHES = ["/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-"] as const;

/**
 * Returns the files of password hashes that this process may not read. A missing one counts: root's tools make it with these modes. For
 * the uid 0 of a container none counts, since such a file would be its own; nor does one that cannot be looked at.
 */
export function keptByModes(uid = process.getuid?.()): ReadonlySet<string> {
  return new Set(uid === 0 ? [] : PASSWORD_HASHES.filter(isKept));
}

function isKept(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    return false;
  } catch (error) {
    return ["EACCES", "ENOENT"].includes((error as NodeJS.ErrnoException).code ?? "");
  }
}

type Looked = { readonly kind: PathKind; readonly real: string | undefined };

const MISSING: Looked = { kind: "missing", real: undefined };

/** Looks up each folder on the path once: a policy names many paths in few folders. */
function look(path: string, looked: Map<string, Looked>): Looked {
  const known = looked.get(path);
  if (known !== undefined) return known;
  const found = lookAt(path, looked);
  looked.set(path, found);
  return found;
}

function lookAt(path: string, looked: Map<string, Looked>): Looked {
  const parent = dirname(path);
  if (parent !== path) {
    const { kind, real } = look(parent, looked);
    if (real === undefined || (kind !== "folder" && kind !== "symlinked")) return MISSING;
    if (kind === "symlinked") return linked(path);
  }
  try {
    const stat = lstatSync(path, { throwIfNoEntry: false });
    if (stat === undefined) return MISSING;
    if (stat.isSymbolicLink()) return linked(path);
    if (stat.isDirectory()) return { kind: "folder", real: path };
    return { kind: stat.isFile() ? "file" : "other", real: path };
  } catch {
    // The parent cannot be entered, so no mount could show the path either.
    return MISSING;
  }
}

function linked(path: string): Looked {
  try {
    const real = realpathSync.native(path);
    return { kind: real === path ? "other" : "symlinked", real };
  } catch {
    // A dangling or circular link, or a target that cannot be entered. If the link is denied, the link itself is hidden.
    return MISSING;
  }
}

/** Whether this user, whose rights commands have too, may look names up in the folder. Root's containers have their mounts in one that others may not. */
function isSearchable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "EACCES";
  }
}

/** Above the number of names in a usual home folder: some hundred. */
const MOST_NAMES = 1024;

function isListable(path: string): boolean {
  try {
    return unlessScarce(() => readdirSync(path)).length <= MOST_NAMES;
  } catch (error) {
    if (error instanceof WorldUnavailable) throw error;
    return false;
  }
}

export function foldersIn(path: string): readonly string[] {
  try {
    const entries = unlessScarce(() => readdirSync(path, { withFileTypes: true }));
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  } catch (error) {
    if (error instanceof WorldUnavailable) throw error;
    // Unreadable for the broker, so nothing below is readable inside either: the folder stays as on the host, read-only.
    return [];
  }
}
