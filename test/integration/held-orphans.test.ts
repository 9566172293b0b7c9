import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { eventually } from "../support/broker/broker.ts";
import { type Deed, HeldPlace, type Span } from "../support/held/place.ts";
import { actors } from "../support/users/users.ts";

/** One file under many names: it takes little room, and each name is compared to its end. */
const LARGE = 'cd "$1"; head -c 33554432 /dev/zero > 0; for i in $(seq 60); do ln 0 "$i"; done';
const FILES = 1500;
const TICKS = 5;

describe.each(actors())(
  "a broker that is killed while a process of its own works for it, as $kind",
  (actor) => {
    async function busy(place: HeldPlace, isReady: (pid: number) => boolean): Promise<number> {
      let pid = 0;
      await eventually(() => {
        pid = place.readers().find(isReady) ?? 0;
        return pid !== 0;
      }, 10_000);
      process.kill(pid, "SIGSTOP");
      return pid;
    }

    test("leaves no reader of held changes behind, however long it would read on", async () => {
      await using place = await HeldPlace.open(actor);
      const span = await place.project("large", []);
      await place.sh(LARGE, span.project);
      await place.sh(LARGE, join(span.layers, "upper"));
      void place.list(span).catch(() => undefined);
      // So much of the processor goes into comparing alone.
      const pid = await busy(place, (each) => ticksOf(each) >= TICKS);
      try {
        await place.killDriver();
        expect(await eventually(() => stateOf(pid) === "gone", 3000)).toBe(true);
      } finally {
        if (stateOf(pid) !== "gone") process.kill(pid, "SIGKILL");
      }
    });

    test("has its apply carried on to the end", async () => {
      await using place = await HeldPlace.open(actor);
      const span: Span = await place.project("many", []);
      await place.isolated(
        span,
        Array.from({ length: FILES }, (_, index): Deed => {
          return { deed: "file", path: `f${index}`, text: "after" };
        }),
      );
      await place.list(span);
      void place.apply(span).catch(() => undefined);
      const journal = join(span.layers, "applies/000001");
      const pid = await busy(place, () => existsSync(join(journal, "place")));
      expect(existsSync(join(journal, "record"))).toBe(false);
      await place.killDriver();
      await sleep(200);
      expect(stateOf(pid)).toBe("T");
      process.kill(pid, "SIGCONT");
      expect(await eventually(() => stateOf(pid) === "gone", 20_000)).toBe(true);
      expect(existsSync(join(journal, "finished"))).toBe(true);
      expect(readFileSync(join(span.project, `f${FILES - 1}`), "utf8")).toBe("after");
    });
  },
);

test.each(["held", "changes", "find"])(
  "'substrate-init %s' keeps no descriptor that it was not given",
  async (word) => {
    const init = join(import.meta.dirname, "../../.build/substrate-init");
    const child = spawn(init, [word], { env: {}, stdio: ["pipe", "pipe", "ignore", "pipe"] });
    const extra = child.stdio[3];
    if (extra === null || extra === undefined || !("resume" in extra))
      throw new Error("There is no fourth pipe");
    try {
      extra.resume();
      // Only the closing of all its copies ends a pipe, and the program has one while it waits for a request.
      await once(extra, "end", { signal: AbortSignal.timeout(3000) });
      expect(child.exitCode).toBe(null);
      expect(stateOf(child.pid ?? 0)).not.toBe("gone");
    } finally {
      child.kill("SIGKILL");
      await once(child, "close");
    }
  },
);

/** Processor time in ticks (proc_pid_stat(5)), counted behind the name, which may hold blanks. */
function ticksOf(pid: number): number {
  const fields = statOf(pid);
  return Number(fields[11] ?? 0) + Number(fields[12] ?? 0);
}

/** The letter of a process's state; "gone" also for a zombie, which has ended and waits for its parent. */
function stateOf(pid: number): string {
  const state = statOf(pid)[0] ?? "gone";
  return state === "Z" || state === "X" ? "gone" : state;
}

function statOf(pid: number): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8")
      .replace(/^.*\) /s, "")
      .trim()
      .split(" ");
  } catch {
    // Gone, ignoring: that is what the empty list says.
    return [];
  }
}
