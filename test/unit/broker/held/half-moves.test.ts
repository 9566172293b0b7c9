import { describe, expect, test } from "vitest";
import { HalfMoves } from "../../../../broker/held/half-moves.ts";
import type { HeldChange, HeldSide, OpenSides } from "../../../../world/backend.ts";

type Tree = Readonly<Record<string, string>>;

function change(path: string, kind: HeldChange["kind"], size = 0): HeldChange {
  return {
    path,
    kind,
    autorun: false,
    size,
    mode: kind === "delete" ? 0 : 0o100644,
    links: 1,
    attributes: [],
  };
}

/** Both trees in memory, with the names that were read. */
function sidesOf(before: Tree, after: Tree, read: string[]): OpenSides {
  const side = (tree: Tree, path: string): HeldSide => {
    const text = tree[path];
    return text === undefined ? { kind: "none" } : { kind: "file", mode: 0o644, size: text.length };
  };
  return {
    identity: () => Promise.resolve("1:1"),
    before: (path) => Promise.resolve(side(before, path)),
    after: ({ path }) => Promise.resolve(side(after, path)),
    content: (which, path) => {
      read.push(`${which} ${path}`);
      return Promise.resolve(Buffer.from((which === "before" ? before : after)[path] ?? ""));
    },
    filesBelow: () => Promise.resolve({ paths: [], more: false }),
    close: () => Promise.resolve(),
  };
}

describe("halves of moves", () => {
  const names = Array.from({ length: 50 }, (_, at) => `${at}`);
  const before = Object.fromEntries(names.map((name) => [`old/${name}`, `same size ${name.padStart(2)}`]));
  const after = Object.fromEntries(names.map((name) => [`new/${name}`, `same size ${name.padStart(2)}`]));
  const deletions = Object.keys(before).map((path) => change(path, "delete"));
  const held = Object.entries(after).map(([path, { length }]) => change(path, "write", length));

  test("are found by content, each file read once, however many are as large and however often it is asked", async () => {
    const read: string[] = [];
    const moves = new HalfMoves(
      () => Promise.resolve(sidesOf(before, after, read) as never),
      AbortSignal.timeout(10_000),
    );
    for (let round = 0; round < 3; round += 1) {
      const halves = await moves.among(deletions, held);
      expect(halves).toHaveLength(names.length);
      expect(halves[7]).toEqual({ path: "old/7", reason: "Its content is in 'new/7', which stays held" });
    }
    expect(read).toHaveLength(2 * names.length);
    expect(await moves.among(deletions, held.slice(0, 1))).toHaveLength(1);
  });

  test("end when time is up", async () => {
    const moves = new HalfMoves(
      () => Promise.resolve(sidesOf(before, after, []) as never),
      AbortSignal.abort(new Error("late")),
    );
    await expect(moves.among(deletions, held)).rejects.toThrow("late");
  });

  test("are no new files, and nothing where all is applied", async () => {
    const moves = new HalfMoves(() => Promise.reject(new Error("opened")), AbortSignal.timeout(10_000));
    expect(await moves.among(held, [])).toEqual([]);
    expect(await moves.among(held, held)).toEqual([]);
  });
});
