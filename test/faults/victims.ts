/** The processes of a broker's worlds as the host sees them, and whom to kill. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import type { Random } from "./random.ts";

/** `start` (clock ticks since boot) tells a process from a later one with the same number. */
export type Seen = { readonly pid: number; readonly parent: number; readonly start: number };

/** One init with all below it, at one moment. */
export type SeenWorld = {
  readonly outer: Seen;
  /** PID 1 of the world; none while the world is being made. */
  readonly first: Seen | undefined;
  readonly forker: Seen | undefined;
  readonly leaders: readonly Seen[];
  /** The helper of its network, which is no process of the world; none while PID 1 is not there or not ours to look into. */
  readonly network: Seen | undefined;
  readonly everything: readonly Seen[];
};

export const KINDS_FOR_ANYBODY = ["broker", "outer init", "PID 1", "forker", "leader"] as const;
/** Only root may look into the namespaces of a world, and so tell which of the networks is its. */
export const KINDS = [...KINDS_FOR_ANYBODY, "network"] as const;
export type Kind = (typeof KINDS)[number];
export type Kinds = readonly [Kind, ...Kind[]];

/** `world` is what the death takes along; for the broker all of them, for a leader only what is below it. */
export type Victim = {
  readonly kind: Kind;
  readonly process: Seen;
  readonly takes: readonly Seen[];
  /** The world's pid namespace, when it is one world that dies and the host lets us see it. */
  readonly namespace: string | undefined;
  /** When it was chosen, in clock ticks since boot, as a process's `start` is. */
  readonly tick: number;
};

/** Linux gives user space ticks of 10 ms on every architecture that Node runs on (USER_HZ). */
const TICKS_PER_SECOND = 100;

/** Somebody to kill now: of the wanted kind, or of another one when there is none at this moment. */
export function chooseVictim(brokerPid: number, kind: Kind, random: Random): Victim | undefined {
  const all = processes();
  const broker = all.find(({ pid }) => pid === brokerPid);
  if (broker === undefined) return undefined;
  if (kind === "broker")
    return { kind, process: broker, takes: below(all, broker), namespace: undefined, tick: now() };
  const candidates = worldsOf(all, broker).flatMap((world) => ofKind(all, world, kind));
  const [first, ...rest] = candidates;
  return first === undefined ? undefined : random.pick([first, ...rest]);
}

function ofKind(all: readonly Seen[], world: SeenWorld, kind: Exclude<Kind, "broker">): readonly Victim[] {
  if (kind === "leader") {
    return world.leaders.map((leader) => {
      const takes = [leader, ...below(all, leader)];
      return { kind, process: leader, takes, namespace: undefined, tick: now() };
    });
  }
  const { outer, first, forker, network } = world;
  const process = { "outer init": outer, "PID 1": first, forker, network }[kind];
  if (process === undefined) return [];
  const namespace = world.first === undefined ? undefined : pidNamespace(world.first.pid);
  const takes = kind === "network" ? [process, ...world.everything] : world.everything;
  return [{ kind, process, takes, namespace, tick: now() }];
}

function worldsOf(all: readonly Seen[], broker: Seen): readonly SeenWorld[] {
  const children = childrenOf(all, broker);
  const helpers = children.filter((child) => roleOf(child) === "network");
  return children
    .filter((child) => roleOf(child) === "")
    .map((outer) => {
      const first = childrenOf(all, outer)[0];
      const [forker, ...leaders] = first === undefined ? [] : childrenOf(all, first);
      const inside = first === undefined ? undefined : namespaceOf(first.pid, "net");
      const network =
        inside === undefined ? undefined : helpers.find(({ pid }) => namespaceOf(pid, "net") === inside);
      return { outer, first, forker, leaders, network, everything: [outer, ...below(all, outer)] };
    });
}

/** The first argument of `substrate-init`: a world's has none, helpers and readers of changes are named. */
function roleOf({ pid }: Seen): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0")[1];
  } catch {
    // It has ended meanwhile.
    return undefined;
  }
}

/** Oldest first: PID 1 starts its forker before anything else. */
function childrenOf(all: readonly Seen[], parent: Seen): readonly Seen[] {
  const children = all.filter((process) => process.parent === parent.pid);
  return children.sort((one, other) => one.start - other.start || one.pid - other.pid);
}

function below(all: readonly Seen[], top: Seen): readonly Seen[] {
  return childrenOf(all, top).flatMap((child) => [child, ...below(all, child)]);
}

/** Every process of this machine that has not ended. */
export function processes(): readonly Seen[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => see(Number(name)) ?? []);
}

/** proc_uptime(5) counts from the same moment as a process's start. */
function now(): number {
  return Number(readFileSync("/proc/uptime", "utf8").split(" ")[0]) * TICKS_PER_SECOND;
}

/** Whether that very process is still there. */
export function isAlive({ pid, start }: Seen): boolean {
  return see(pid)?.start === start;
}

function see(pid: number): Seen | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // proc(5): after the name in parentheses come the state (3), the parent (4), … and the start (22).
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [state, parent] = fields;
    if (state === "Z" || state === "X") return undefined;
    return { pid, parent: Number(parent), start: Number(fields[19]) };
  } catch {
    // It has ended meanwhile.
    return undefined;
  }
}

/** Undefined when the process is gone, or is not ours to look into. */
export function pidNamespace(pid: number): string | undefined {
  return namespaceOf(pid, "pid");
}

function namespaceOf(pid: number, kind: "pid" | "net"): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/${kind}`);
  } catch {
    return undefined;
  }
}
