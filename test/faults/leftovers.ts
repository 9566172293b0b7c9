/** What a death may not leave behind. Each function returns one line per finding, none when all is well. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Span } from "../../schemas/generated/types.ts";
import { homeLayout } from "../../broker/settings/home.ts";
import { makerOf, thisMaker } from "../../world/cgroup/names.ts";
import { type TestBroker, eventually, ROOT_OVERLAY } from "../support/broker/broker.ts";
import { MARKER } from "./load.ts";
import { isAlive, pidNamespace, processes, type Victim } from "./victims.ts";

/** How long the kernel, and whoever cleans up, may take (a world ends with its broker within 2 s). */
export const PATIENCE_MS = 2000;

/** How long the kernel may take to put away what runs no instruction any more: mounts and networks of a world, on a busy machine. */
const TEARDOWN_MS = 30_000;

/** Looks again until nothing is found or the time is over. */
export async function soonNone(
  look: () => readonly string[],
  patienceMs = PATIENCE_MS,
): Promise<readonly string[]> {
  await eventually(() => look().length === 0, patienceMs);
  return look();
}

/** What of a victim still runs after `PATIENCE_MS`, or is still there after the kernel's own time. */
export async function outliving(victim: Victim): Promise<readonly string[]> {
  const running = await soonNone(() =>
    survivors(victim).flatMap(({ pid, words }) => (isEnding(pid) ? [] : [words])),
  );
  return running.length > 0
    ? running
    : await soonNone(() => survivors(victim).map(({ words }) => words), TEARDOWN_MS);
}

/** Whether the kernel has taken a process's memory: it runs no instruction any more (proc(5), status). */
function isEnding(pid: number): boolean {
  return !/^VmSize:/m.test(readOrNothing(`/proc/${pid}/status`));
}

/**
 * What was below the victim when it was killed, and what had joined its world by then. Later ones are of another world:
 * the kernel gives the number of a dead namespace to the next.
 */
function survivors({ kind, takes, namespace, tick }: Victim): readonly { pid: number; words: string }[] {
  const known = takes.filter(isAlive).map(({ pid }) => pid);
  const joined =
    namespace === undefined
      ? []
      : processes().flatMap(({ pid, start }) =>
          start < tick && pidNamespace(pid) === namespace ? [pid] : [],
        );
  return [...new Set([...known, ...joined])].map((pid) => ({
    pid,
    words: `process ${pid} (${commandLine(pid)}) outlives the ${kind}`,
  }));
}

/** Processes of the load, by what their commands had in their environment. */
export function marked(marker: string): readonly string[] {
  const wanted = `${MARKER}=${marker}`;
  return processes().flatMap(({ pid }) =>
    readOrNothing(`/proc/${pid}/environ`).includes(wanted)
      ? [`process ${pid} (${commandLine(pid)}) of the load is left`]
      : [],
  );
}

/** Mounts of worlds that the host sees: there is never any, dead or alive. */
export function mounts(broker: TestBroker): readonly string[] {
  const own = [broker.folder, overlayOf(broker)];
  return readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .filter((line) => own.some((path) => line.includes(path)))
    .map((line) => `the host has a mount: ${line}`);
}

/**
 * Groups that hold no process and whose name says that one of these brokers made them, dead or alive: one of a world
 * that runs holds its init. The group that all brokers share is nobody's.
 */
export function cgroups(brokers: ReadonlySet<number>): readonly string[] {
  return cgroupRoots()
    .flatMap((root) => groupsOf(brokers, root))
    .filter((path) => /^populated 0$/m.test(readOrNothing(join(path, "cgroup.events"))))
    .map((path) => `the cgroup '${path}' is left`);
}

function cgroupRoots(): readonly string[] {
  return readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .filter((line) => line.includes(" - cgroup2 "))
    .map((line) => line.split(" ")[4] ?? "/sys/fs/cgroup");
}

function groupsOf(brokers: ReadonlySet<number>, folder: string): readonly string[] {
  return foldersIn(folder).flatMap((name) => {
    const path = join(folder, name);
    return brokers.has(makerNumber(name) ?? -1) ? [path] : groupsOf(brokers, path);
  });
}

/** The broker's number in the name of a world's group, or of one that was made to see whether one can be. */
function makerNumber(name: string): number | undefined {
  const owner = makerOf(name);
  if (owner !== undefined) return owner.space === thisMaker().space ? owner.pid : undefined;
  const number = /^substrate.*-(\d+)$/.exec(name)?.[1];
  return number === undefined ? undefined : Number(number);
}

/** Of projects, beside the layers: they stay. */
const LOCKS = ".locks";

/** Layers that hold nothing that anybody could ask for. */
export function layers(broker: TestBroker, held: ReadonlySet<string>): readonly string[] {
  return foldersIn(overlayOf(broker))
    .filter((name) => name !== LOCKS && !held.has(name))
    .map((name) => `the layers '${name}' are left, and that span holds nothing`);
}

/** The trace read from where the last look ended: it only grows. */
export class TraceReader {
  readonly held = new Set<string>();
  readonly #open = new Map<string, string>();
  #lines = 0;

  /** Spans that were started and are not closed; their held changes are remembered. */
  open(spans: readonly Span[]): readonly string[] {
    for (const span of spans.slice(this.#lines)) this.#take(span);
    this.#lines = spans.length;
    return [...this.#open].map(([id, cmd]) => `the span ${id} of '${cmd}' is not closed`);
  }

  #take(span: Span): void {
    if (span.event_type === "command_start") this.#open.set(span.span_id, span.cmd ?? "");
    if (span.event_type !== "command_complete") return;
    this.#open.delete(span.span_id);
    if (span.fs_diff?.held === true) this.held.add(span.span_id);
  }
}

function overlayOf(broker: TestBroker): string {
  return homeLayout(broker.home, broker.actor.uid === 0 ? ROOT_OVERLAY : undefined).overlay;
}

function commandLine(pid: number): string {
  return readOrNothing(`/proc/${pid}/cmdline`).replaceAll("\0", " ").trim();
}

function foldersIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() ? [entry.name] : [],
    );
  } catch {
    // Not there, or gone meanwhile: it holds nothing.
    return [];
  }
}

function readOrNothing(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    // Gone, or not ours to look into.
    return "";
  }
}
