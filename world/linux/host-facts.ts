import { lstatSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { hostname } from "node:os";
import { dirname } from "node:path";
import { WorldUnavailable } from "../model/unavailable.ts";
import { unlessScarce } from "./scarce.ts";
import type { HostFacts, PathKind } from "../plan/host-facts.ts";
import { MountTable, parseMounts } from "../plan/mount-table.ts";

/** Facts read from the host once for each path, at its first question; the mount table and the sockets now. */
export function hostFacts(
  known: Pick<HostFacts, "found" | "unveilable" | "userNamespace" | "namesServed" | "layers">,
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
    mountPoints: [...new Set(mounts.map(({ point }) => point))],
    otherNames: (path) => table.otherNames(path),
    datagramSockets: parseDatagramSockets(unlessScarce(() => readFileSync("/proc/net/unix", "utf8"))),
    ...known,
  };
}

/**
 * The absolute paths that programs of this network namespace gave to datagram sockets (type 2); abstract ones have none. Any text
 * can stand there.
 */
export function parseDatagramSockets(table: string): readonly string[] {
  const paths = table
    .split("\n")
    .flatMap((line) => /^\S+: (?:\S+ ){3}0002 \S+ +\d+ (\/.*)$/.exec(line)?.[1] ?? []);
  return [...new Set(paths)];
}

type Looked = { readonly kind: PathKind; readonly real: string | undefined };

const MISSING: Looked = { kind: "missing", real: undefined };

/** One look for each folder on the way, and none twice: a policy names many paths in few folders. */
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
    // Not ours to enter: there is nothing that a mount could show.
    return MISSING;
  }
}

function linked(path: string): Looked {
  try {
    const real = realpathSync.native(path);
    return { kind: real === path ? "other" : "symlinked", real };
  } catch {
    // It leads nowhere, in a circle, or to what is not ours to enter. The link itself is hidden where it is denied.
    return MISSING;
  }
}

/** A home folder has some hundred names. */
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
    // Not ours to read: what is below it is not ours to see either, and stays as the host has it, read-only.
    return [];
  }
}
