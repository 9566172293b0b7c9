import { lstatSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import type { HostFacts, PathKind } from "../plan/host-facts.ts";

/** Facts read from the host at the moment of each question; the mount table and the sockets once, now. */
export function hostFacts(known: Pick<HostFacts, "unveilable" | "userNamespace" | "strays">): HostFacts {
  return {
    kind: kindOf,
    real: realPath,
    folders: foldersIn,
    mountPoints: parseMountPoints(readFileSync("/proc/self/mountinfo", "utf8")),
    sockets: parseSockets(readFileSync("/proc/net/unix", "utf8")),
    ...known,
  };
}

/** The fifth field of each line; a space in a path is `\040` and so on (proc_pid_mountinfo(5)). */
export function parseMountPoints(mountinfo: string): readonly string[] {
  const points = mountinfo.split("\n").flatMap((line) => line.split(" ")[4] ?? []);
  return [...new Set(points.map(unescapeOctal))];
}

/** The paths at which sockets of this network namespace are bound; abstract ones have none. */
export function parseSockets(table: string): readonly string[] {
  const paths = table.split("\n").flatMap((line) => /^\S+: (?:\S+ ){5} *\d+ (\/.*)$/.exec(line)?.[1] ?? []);
  return [...new Set(paths)];
}

function unescapeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_all, code: string) => String.fromCharCode(Number.parseInt(code, 8)));
}

function kindOf(path: string): PathKind {
  const real = realPath(path);
  if (real === undefined) return "missing";
  if (real !== path) return "symlinked";
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return "missing";
  if (stat.isDirectory()) return "folder";
  return stat.isFile() ? "file" : "other";
}

function realPath(path: string): string | undefined {
  try {
    // Most paths that a policy denies are missing, and an error costs many times what this look does.
    if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return undefined;
    return realpathSync.native(path);
  } catch {
    // Missing, a loop of links, or not ours to enter: in each case there is nothing that a mount could show.
    return undefined;
  }
}

function foldersIn(path: string): readonly string[] {
  try {
    const entries = readdirSync(path, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  } catch {
    // Not ours to read: what is below it is not ours to see either, and stays as the host has it, read-only.
    return [];
  }
}
