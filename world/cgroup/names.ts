/** Names of worlds' groups: whose they are, so that a later broker removes only what nobody uses. */
import { readFileSync, readlinkSync } from "node:fs";
import { errnoOf } from "./files.ts";
import { startTime } from "./where.ts";

/** `pid:[4026531836]` → the number; then the broker's pid, its start, and a number of its own. */
const NAME = /^(\d+)-(\d+)-(\d+)-(\d+)$/;

/** What makes names: a pid alone comes back, a pid with its start does not, and means nothing in another namespace. */
export type Maker = { readonly space: string; readonly pid: number; readonly start: string };

export function thisMaker(): Maker {
  const start = startTime(readFileSync(`/proc/${process.pid}/stat`, "utf8"));
  if (start === undefined) throw new Error("Cannot read the start of this process in /proc/self/stat");
  return { space: /\d+/.exec(readlinkSync("/proc/self/ns/pid"))?.[0] ?? "0", pid: process.pid, start };
}

export function groupName(maker: Maker, number: number): string {
  return `${maker.space}-${maker.pid}-${maker.start}-${number}`;
}

/** Whose group it is, in which pid namespace; undefined when it is none of a world. */
export function makerOf(name: string): Maker | undefined {
  const [, space, pid, start] = NAME.exec(name) ?? [];
  if (space === undefined || pid === undefined || start === undefined) return undefined;
  return { space, pid: Number(pid), start };
}

/** True only when it is certain: one of ours, of this pid namespace, whose broker is gone. */
export function isOrphan(name: string, maker: Maker): boolean {
  const owner = makerOf(name);
  if (owner === undefined || owner.space !== maker.space) return false;
  try {
    return startTime(readFileSync(`/proc/${owner.pid}/stat`, "utf8")) !== owner.start;
  } catch (error) {
    return errnoOf(error) === "ENOENT" || errnoOf(error) === "ESRCH";
  }
}
