import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { HeldPlace, type Span } from "../support/held/place.ts";
import { BASE, below } from "../support/held/spans.ts";

describe.each(actors())("held changes that are old enough to go, as $kind", (actor) => {
  let place: HeldPlace;
  beforeAll(async () => {
    place = await HeldPlace.open(actor);
  });
  afterAll(async () => {
    await place[Symbol.asyncDispose]();
  });

  /** Holds the lock of the project, as another process that applies does, until `act` is over. */
  async function whileLocked(held: Span, act: () => Promise<void>): Promise<void> {
    const { dev, ino } = statSync(held.project);
    const locks = join(place.folder, "overlay/.locks");
    await place.sh('mkdir -p "$1" && : > "$2" && chmod 600 "$2"', locks, join(locks, `${dev}-${ino}`));
    const holder = spawn("flock", [join(locks, `${dev}-${ino}`), "sh", "-c", "echo held; read _end"], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    await once(holder.stdout, "data");
    try {
      await act();
    } finally {
      holder.stdin.end("\n");
      await once(holder, "close");
    }
  }

  test("stay as long as they are being applied, and can be taken back afterwards", async () => {
    const held = await place.project("busy", BASE);
    await place.isolated(held, [{ deed: "file", path: "file", text: "after" }]);
    let applied: ReturnType<HeldPlace["apply"]> | undefined;
    await whileLocked(held, async () => {
      applied = place.apply(held);
      await sleep(100);
      expect(await place.expire()).toBe(0);
      expect(existsSync(join(held.layers, "upper/file"))).toBe(true);
    });
    expect(await applied).toMatchObject({ kind: "done", done: ["file"] });
    expect(readFileSync(below(held, "file"), "utf8")).toBe("after");
    expect(await place.undo(held)).toMatchObject({ kind: "done" });
    expect(readFileSync(below(held, "file"), "utf8")).toBe("before");
    expect(await place.expire()).toBe(1);
    expect(existsSync(held.layers)).toBe(false);
  });

  test("go with names that are not UTF-8, and with folders that the command has closed", async () => {
    const held = await place.project("bytes", BASE);
    const script = `cd "$1/upper"; n=$(printf 'n\\377'); mkdir "$n" n2 "$n/sub"; echo x > "$n/sub/f"; chmod 0 "$n/sub" "$n"`;
    await place.sh(script, held.layers);
    expect(await place.expire()).toBe(1);
    expect(readdirSync(join(place.folder, "overlay")).filter((name) => name.includes("bytes"))).toEqual([]);
  });

  test("are there whole or not at all while they are removed: nobody applies half of them", async () => {
    const held = await place.project("large", BASE);
    const count = 3000;
    await place.sh(
      'cd "$1/upper" && mkdir many && cd many && seq "$2" | xargs touch',
      held.layers,
      String(count),
    );
    let over = false;
    const expired = place.expire().finally(() => {
      over = true;
    });
    const seen = new Set<number>();
    while (!over) {
      try {
        seen.add(readdirSync(join(held.layers, "upper/many")).length);
      } catch {
        // Gone, ignoring: that is what is waited for.
      }
      await sleep(0);
    }
    expect(await expired).toBe(1);
    expect([...seen].filter((found) => found !== count)).toEqual([]);
    expect(readdirSync(join(place.folder, "overlay")).filter((name) => name.includes("large"))).toEqual([]);
  });
});
