/** Names the cgroups of worlds after their owner, so that a later broker removes only unused ones. */
import { readFileSync, readlinkSync } from "node:fs";
import { errnoOf } from "./files.ts";
import { startTime } from "./where.ts";

/** The number in `pid:[4026531836]`, the broker's pid, its start time, and a serial number. */
const NAME = /^(\d+)-(\d+)-(\d+)-(\d+)$/;

/** Identity of a broker: pids are reused, but not together with a start time; both are valid only in one pid namespace. */
export type Maker = { readonly space: string; readonly pid: number; readonly start: string };

export function thisMaker(): Maker {
  const start = startTime(readFileSync(`/proc/${process.pid}/stat`, "utf8"));
  if (start === undefined) throw new Error("Cannot read the start of this process in /proc/self/stat");
  return { space: /\d+/.exec(readlinkSync("/proc/self/ns/pid"))?.[0] ?? "0", pid: process.pid, start };
}

export function groupName(maker: Maker, number: number): string {
  return `${maker.space}-${maker.pid}-${maker.start}-${number}`;
}

/** Parses the owner of a cgroup; undefined unless the cgroup of a world. */
export function makerOf(name: string): Maker | undefined {
  const [, space, pid, start] = NAME.exec(name) ?? [];
  if (space === undefined || pid === undefined || start === undefined) return undefined;
  return { space, pid: Number(pid), start };
}

/** True only if certain: a world's cgroup, of this pid namespace, with a dead broker. */
export function isOrphan(name: string, maker: Maker): boolean {
  const owner = makerOf(name);
  if (owner === undefined || owner.space !== maker.space) return false;
  try {
    return startTime(readFileSync(`/proc/${owner.pid}/stat`, "utf8")) !== owner.start;
  } catch (error) {
    return errnoOf(error) === "ENOENT" || errnoOf(error) === "ESRCH";
  }
}
