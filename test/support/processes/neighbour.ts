/** A neighbour that works while another world is attacked, and what the host shows of both. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { TestBroker } from "../broker/broker.ts";

/** The fork bomb's program by a name that nobody else's has (15 bytes are shown). */
export const FORKS = `forks-${process.pid}`;

export type Steady = {
  readonly times: readonly number[];
  readonly failures: readonly unknown[];
  readonly processes: readonly number[];
};

/** Counting reads a file of each process of the host. */
const LOOK_EVERY_MS = 200;

/** Another agent's world runs a command every 20 ms for as long as the attack lasts; each look at the host is told. */
export async function steady(
  broker: TestBroker,
  attack: Promise<unknown>,
  looked: (processes: number) => void = () => undefined,
): Promise<Steady> {
  const [times, failures, processes]: [number[], unknown[], number[]] = [[], [], []];
  let over = false;
  const settled = attack.then(
    () => (over = true),
    () => (over = true),
  );
  let lastLook = performance.now();
  while (!over) {
    const begin = performance.now();
    try {
      const { exit, stdout } = await broker.run({ agent_id: "neighbour", cmd: "echo here" });
      if (exit !== 0 || stdout !== "here\n") failures.push({ exit, stdout });
    } catch (error) {
      failures.push(error);
    }
    times.push(performance.now() - begin);
    // By the clock: a neighbour that is held up must not keep the host from being looked at.
    if (performance.now() - lastLook > LOOK_EVERY_MS) {
      const count = pids().filter((pid) => readOf(pid, "comm") === `${FORKS}\n`).length;
      processes.push(count);
      looked(count);
      lastLook = performance.now();
    }
    await sleep(20);
  }
  await settled;
  return { times, failures, processes };
}

export function peakOfForks({ processes }: Steady): number {
  return Math.max(...processes);
}

export function report(what: string, { times }: Steady): void {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (part: number): string => (sorted[Math.floor((sorted.length - 1) * part)] ?? 0).toFixed(1);
  process.stdout.write(
    `${what}: the neighbour ran ${times.length} commands, median ${at(0.5)} ms, p99 ${at(0.99)} ms\n`,
  );
}

export function brokerMemory(broker: TestBroker): number {
  const status = readFileSync(`/proc/${broker.process.pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
}

/** Host pids whose first word is that name. */
export function named(word: string): readonly number[] {
  return pids().filter((pid) => firstWord(pid) === word);
}

export function childrenOf(parent: number): readonly number[] {
  return pids().filter(
    (pid) =>
      Number(
        readOf(pid, "stat")
          .replace(/^.*\) . /, "")
          .split(" ")[0],
      ) === parent,
  );
}

/** The outer processes of a broker's worlds; the helper of each world's network is another child. */
export function initsOf(broker: number): readonly number[] {
  return childrenOf(broker).filter((pid) => !readOf(pid, "cmdline").includes("\0network\0"));
}

function pids(): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

function firstWord(pid: number): string {
  return readOf(pid, "cmdline").split("\0")[0] ?? "";
}

function readOf(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    // It has ended meanwhile.
    return "";
  }
}

/** The folder of the group in a line of `/proc/self/cgroup`, wherever v2 is mounted. */
export function groupFolder(line: string): string {
  const mounted = /^\S+ \S+ \S+ \/ (\S+) .* - cgroup2 /m.exec(
    readFileSync("/proc/self/mountinfo", "utf8"),
  )?.[1];
  return join(mounted ?? "/sys/fs/cgroup", line.trim().slice("0::".length));
}
