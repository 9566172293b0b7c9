import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { type Deed, HeldPlace } from "../support/held/place.ts";
import { below } from "../support/held/spans.ts";

describe.each(actors())("held changes of files with several names, as $kind", (actor) => {
  let place: HeldPlace;
  beforeAll(async () => {
    place = await HeldPlace.open(actor);
  });
  afterAll(async () => {
    await place[Symbol.asyncDispose]();
  });

  const ONE: readonly Deed[] = [{ deed: "file", path: "a", text: "x" }];
  const LINKED: readonly Deed[] = [...ONE, { deed: "hard", path: "b", from: "a" }];

  test("a name that was added is applied and taken back with the file, in one go or one after the other", async () => {
    for (const [at, orders] of [[null], [["b"], ["a"]], [["a"], ["b"]]].entries()) {
      const held = await place.project(`added-${at}`, ONE);
      const before = await place.look(held.project);
      await place.isolated(held, [{ deed: "hard", path: "b", from: "a" }]);
      expect(await place.apply(held)).toMatchObject({ kind: "done", left: [] });
      expect(statSync(below(held, "b")).ino).toBe(statSync(below(held, "a")).ino);
      for (const paths of orders) expect(await place.undo(held, paths)).toMatchObject({ kind: "done" });
      expect(await place.look(held.project)).toEqual(before);
    }
  });

  test.each<[string, readonly Deed[]]>([
    ["both are written", ["a", "b"].map((path): Deed => ({ deed: "file", path, text: `new ${path}` }))],
    ["both go", ["a", "b"].map((path): Deed => ({ deed: "remove", path }))],
  ])("two names of one file of the project: %s, and it comes back as it was", async (what, deeds) => {
    const held = await place.project(`two-${what.replaceAll(" ", "-")}`, LINKED);
    const before = await place.look(held.project);
    const seen = await place.isolated(held, deeds);
    expect(await place.apply(held)).toMatchObject({ kind: "done", left: [] });
    expect(Object.keys((await place.look(held.project)).tree)).toEqual(Object.keys(seen.tree));
    expect(await place.undo(held)).toMatchObject({ kind: "done", left: [] });
    expect((await place.look(held.project)).tree).toEqual(before.tree);
  });

  test("one that somebody wrote to since is not taken back", async () => {
    const held = await place.project("written", ONE);
    await place.isolated(held, [{ deed: "hard", path: "b", from: "a" }]);
    await place.apply(held);
    writeFileSync(below(held, "b"), "mine");
    expect(await place.undo(held)).toMatchObject({ kind: "conflict" });
    expect(readFileSync(below(held, "a"), "utf8")).toBe("mine");
    expect(existsSync(below(held, "b"))).toBe(true);
  });
});
