import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { isCrowded, type Waiter } from "../../../../world/backend.ts";
import { ScanQueue } from "../../../../world/overlay/scan-queue.ts";

type Held = { readonly begun: string[]; readonly release: (name: string) => void };

/** Scans that run until they are released, and tell when they begin. */
function scans(): Held & {
  readonly ask: (name: string, waiter?: Waiter, signal?: AbortSignal, project?: string) => Promise<string>;
} {
  const queue = new ScanQueue();
  const begun: string[] = [];
  const running = new Map<string, () => void>();
  const never = new AbortController().signal;
  return {
    begun,
    release: (name) => running.get(name)?.(),
    ask: (name, waiter = "agent", signal = never, project = "p") =>
      queue.run({ project, waiter, name }, signal, (ending) => {
        begun.push(name);
        return new Promise<string>((resolve, reject) => {
          running.set(name, () => resolve(`${name} ${begun.length}`));
          ending.addEventListener("abort", () => reject(ending.reason as Error));
        });
      }),
  };
}

async function failure(work: Promise<unknown>): Promise<unknown> {
  return await work.then(
    () => undefined,
    (error: unknown) => error,
  );
}

describe("scans of held changes", () => {
  test("of one project run one at a time, and of another beside them", async () => {
    const { ask, begun, release } = scans();
    const [one, two] = [ask("one"), ask("two")];
    const other = ask("other", "agent", undefined, "q");
    expect(begun).toEqual(["one", "other"]);
    release("one");
    await one;
    await sleep(0);
    expect(begun).toEqual(["one", "other", "two"]);
    for (const name of ["two", "other"]) release(name);
    await Promise.all([two, other]);
  });

  test("that have not begun answer all who ask for the same; one that runs may be too old for a later call", async () => {
    const { ask, begun, release } = scans();
    const first = ask("one");
    const later = [ask("one"), ask("one"), ask("one")];
    release("one");
    await first;
    await sleep(0);
    release("one");
    expect(await Promise.all(later)).toEqual(["one 2", "one 2", "one 2"]);
    expect(begun).toEqual(["one", "one"]);
  });

  test("of agents are refused beyond a few that wait; a person's comes first and never is", async () => {
    const { ask, begun, release } = scans();
    const waiting = ["running", "a", "b", "c", "d"].map((name) => ask(name));
    expect(isCrowded(await failure(ask("e")))).toBe(true);
    waiting.push(ask("broker", "broker"), ask("person", "operator"), ask("d", "operator"));
    for (const name of ["running", "person", "d", "broker", "a", "b", "c"]) {
      expect(begun.at(-1)).toBe(name);
      release(name);
      await sleep(0);
    }
    await Promise.all(waiting);
  });

  test("end when their last client leaves, waiting or running", async () => {
    const { ask, begun, release } = scans();
    const [first, second, third] = [new AbortController(), new AbortController(), new AbortController()];
    const gone = new Error("gone");
    const left = failure(ask("one", "agent", first.signal));
    const waits = [
      failure(ask("two", "agent", second.signal)),
      failure(ask("three", "agent", third.signal)),
      ask("three"),
    ];
    for (const client of [second, third, first]) client.abort(gone);
    expect(await left).toBe(gone);
    await sleep(0);
    expect(begun).toEqual(["one", "three"]);
    release("three");
    expect(await Promise.all(waits)).toEqual([gone, gone, "three 2"]);
  });
});
