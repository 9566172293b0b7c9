import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { timeLimit } from "../../../../world/model/time-limit.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** Waits for the end of a signal that nobody else holds, as a caller that gives its signal away does. */
function ended(make: () => AbortSignal): Promise<unknown> {
  const signal = make();
  return new Promise((resolve) =>
    signal.addEventListener("abort", () => resolve(signal.reason), { once: true }),
  );
}

test("a limit that nobody holds ends whoever waits for it, whatever the garbage collector took", async () => {
  const closing = new AbortController();
  const waiting = [
    ended(() => timeLimit(300)),
    ended(() => timeLimit(300, closing.signal)),
    ended(() => AbortSignal.any([timeLimit(300), closing.signal])),
  ];
  await sleep(20);
  collect();
  for (const reason of await Promise.all(waiting))
    expect(reason).toMatchObject({ name: "TimeoutError", message: "It took longer than 300 ms" });
});

test("another signal ends it before its time, with that one's reason, also one that has ended already", async () => {
  const closing = new AbortController();
  const cause = new Error("closed");
  const waiting = ended(() => timeLimit(60_000, closing.signal));
  closing.abort(cause);
  expect(await waiting).toBe(cause);
  expect(timeLimit(60_000, closing.signal)).toMatchObject({ aborted: true, reason: cause });
});
