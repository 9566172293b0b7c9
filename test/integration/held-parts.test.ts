import { existsSync, rmSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../actors.ts";
import { type Deed, HeldPlace } from "../support/held/place.ts";
import { below } from "../support/held/spans.ts";

describe.each(actors())("held changes that are applied in parts, as $kind", (actor) => {
  let place: HeldPlace;
  beforeAll(async () => {
    place = await HeldPlace.open(actor);
  });
  afterAll(async () => {
    await place[Symbol.asyncDispose]();
  });

  const MADE: readonly Deed[] = [
    { deed: "dir", path: "new", mode: 0o755 },
    { deed: "dir", path: "new/deep", mode: 0o700 },
    { deed: "file", path: "new/deep/one", text: "1", mode: 0o644, time: 1_000_000_000 },
    { deed: "file", path: "new/two", text: "2", mode: 0o600, time: 1_000_000_000 },
  ];

  test.each<[string, readonly Deed[]]>([
    ["a new folder", []],
    ["a folder that stands for a file", [{ deed: "file", path: "new", text: "before" }]],
  ])("%s stays when all that it held is taken back by name, and takes it again", async (what, base) => {
    const held = await place.project(`stays-${what.replaceAll(" ", "-")}`, base);
    const before = await place.look(held.project);
    const seen = await place.isolated(held, [{ deed: "remove", path: "new" }, ...MADE]);
    expect(await place.apply(held)).toMatchObject({ kind: "done", left: [] });
    const files = ["new/deep/one", "new/two"];
    expect(await place.undo(held, files)).toMatchObject({ kind: "done", left: ["new", "new/deep"] });
    expect(existsSync(below(held, "new/deep"))).toBe(true);
    expect(existsSync(below(held, "new/two"))).toBe(false);
    expect(await place.apply(held)).toMatchObject({ kind: "done", done: files, left: [] });
    expect(Object.keys((await place.look(held.project)).tree)).toEqual(Object.keys(seen.tree));
    expect(await place.undo(held)).toMatchObject({ kind: "done", left: [] });
    expect(await place.look(held.project)).toEqual(before);
  });

  test("a folder that was made anew comes back as it was when it was applied in two goes", async () => {
    const file = (path: string, text: string): Deed => ({
      deed: "file",
      path,
      text,
      mode: 0o644,
      time: 1_000_000_000,
    });
    const folder: Deed = { deed: "dir", path: "ex", mode: 0o755 };
    const held = await place.project("anew", [folder, file("ex/a", "old a"), file("ex/b", "old b")]);
    const before = await place.look(held.project);
    const deeds = [{ deed: "remove", path: "ex" }, folder, file("ex/a", "new a"), file("ex/c", "new c")];
    const seen = await place.isolated(held, deeds);
    expect(await place.apply(held, ["ex/a"])).toMatchObject({ kind: "done", done: ["ex/a"] });
    expect(await place.apply(held)).toMatchObject({ kind: "done", left: [] });
    expect(Object.keys((await place.look(held.project)).tree)).toEqual(Object.keys(seen.tree));
    expect(await place.undo(held)).toMatchObject({ kind: "done", left: [] });
    expect(await place.look(held.project)).toEqual(before);
  });

  test("a folder has its times back when something was put into it before its mode was applied", async () => {
    const folder: Deed = { deed: "dir", path: "old", mode: 0o755 };
    const held = await place.project("mode", [folder]);
    const before = await place.look(held.project);
    await place.isolated(held, [
      { deed: "link", path: "old/a", text: "/nowhere" },
      { deed: "chmod", path: "old", mode: 0o700 },
    ]);
    expect(await place.apply(held, ["old/a"])).toMatchObject({ kind: "done", done: ["old/a"] });
    expect(await place.apply(held)).toMatchObject({ kind: "done", done: ["old"] });
    expect(await place.undo(held)).toMatchObject({ kind: "done", left: [] });
    expect(await place.look(held.project)).toEqual(before);
  });

  test.each([
    ["beside each other", ["old/a", "old/b"]],
    ["above each other", ["a", "old/a"]],
  ])(
    "what was put %s one by one, and taken back so, leaves folders with the times they had",
    async (how, paths) => {
      const held = await place.project(`times-${how.slice(0, 5)}`, [
        { deed: "dir", path: "old", mode: 0o755 },
      ]);
      const before = await place.look(held.project);
      await place.isolated(
        held,
        paths.map((path) => ({ deed: "link", path, text: "/nowhere" })),
      );
      for (const path of paths) expect(await place.apply(held, [path])).toMatchObject({ kind: "done" });
      for (const path of paths) expect(await place.undo(held, [path])).toMatchObject({ kind: "done" });
      expect(await place.look(held.project)).toEqual(before);
    },
  );

  test("what lies in an applied folder that somebody removed since is told to have no place, and is not called done", async () => {
    const held = await place.project("removed", []);
    await place.isolated(held, MADE);
    expect(await place.apply(held, ["new/two"])).toMatchObject({ kind: "done" });
    rmSync(below(held, "new"), { recursive: true });
    expect(await place.apply(held)).toMatchObject({
      kind: "conflict",
      conflicts: expect.arrayContaining([
        { path: "new/deep/one", reason: "The folder 'new' around it no longer exists" },
      ]) as unknown,
    });
    expect(existsSync(below(held, "new"))).toBe(false);
  });
});
