import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { type Deed, HeldPlace, type Picture } from "../support/held/place.ts";

const NAMES = ["a", "b", "a-b", "c\nd", "\u00ff\u00fe", ".x"];
const MODES = [0o644, 0o600, 0o755, 0o444];
const TIMES = [1_000_000_000, 1_234_567_890.5];

const name = fc.constantFrom(...NAMES);
const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((parts) => parts.join("/"));
const text = fc.constantFrom("", "one", "two", "a longer text\n".repeat(9));
const time = fc.constantFrom(...TIMES);

const making = fc.oneof(
  fc.record({ deed: fc.constant("file"), path, text, mode: fc.constantFrom(...MODES), time }),
  fc.record({ deed: fc.constant("dir"), path, mode: fc.constantFrom(0o755, 0o700) }),
  fc.record({ deed: fc.constant("link"), path, text: fc.constantFrom("a", "../b", "/no/where") }),
);
const changing = fc.oneof(
  making,
  making,
  fc.record({ deed: fc.constant("append"), path, text }),
  fc.record({ deed: fc.constant("open"), path }),
  fc.record({ deed: fc.constant("chmod"), path, mode: fc.constantFrom(0o600, 0o755, 0o700) }),
  fc.record({ deed: fc.constant("touch"), path, time }),
  fc.record({ deed: fc.constant("remove"), path }),
  fc.record({ deed: fc.constant("rename"), path, from: path }),
  fc.record({ deed: fc.constant("hard"), path, from: path }),
);
const base: fc.Arbitrary<Deed[]> = fc.array(making, { minLength: 5, maxLength: 25 });
const change: fc.Arbitrary<Deed[]> = fc.array(changing, { minLength: 1, maxLength: 15 });

describe.each(actors())("changes that an overlay holds, as $kind", (actor) => {
  let place: HeldPlace;
  let round = 0;

  beforeAll(async () => {
    place = await HeldPlace.open(actor);
  });

  afterAll(async () => {
    await place[Symbol.asyncDispose]();
  });

  test("are in the project as the command saw them once applied, and as before once undone", async () => {
    await fc.assert(
      fc.asyncProperty(base, change, async (made, changed) => {
        const span = await place.project(`whole-${++round}`, made);
        const before = await place.look(span.project);
        const seen = await place.isolated(span, changed);
        expect(await place.look(span.project)).toEqual(before);
        const applied = await place.apply(span);
        expect(applied).toMatchObject({ kind: "done", left: [] });
        const now = comparable(await place.look(span.project), before);
        expect(now.tree).toEqual(comparable(seen, before).tree);
        expectLinks(now.groups, seen.groups);
        expect(await place.list(span)).toEqual([]);
        expect(await place.undo(span)).toMatchObject({ kind: "done", left: [] });
        expect(await place.look(span.project)).toEqual(before);
      }),
      { numRuns: 25, endOnFailure: true },
    );
  }, 300_000);

  test("can be applied and undone in parts, in any order, and come to the same", async () => {
    await fc.assert(
      fc.asyncProperty(base, change, fc.infiniteStream(fc.boolean()), async (made, changed, coins) => {
        const span = await place.project(`parts-${++round}`, made);
        const before = await place.look(span.project);
        const seen = await place.isolated(span, changed);
        const all = (await place.list(span)).map((one) => one.path);
        const some = all.filter(() => coins.next().value);
        if (some.length > 0) expect(await place.apply(span, some)).toMatchObject({ kind: "done" });
        const back = some.filter(() => coins.next().value);
        if (back.length > 0) expect(await place.undo(span, back)).toMatchObject({ kind: "done" });
        const rest = await place.apply(span);
        expect(rest).toMatchObject({ kind: "done", left: [] });
        // Names that were applied at different times are files of their own.
        const { tree } = comparable(await place.look(span.project), before);
        expect(tree).toEqual(comparable(seen, before).tree);
        expect(await place.undo(span)).toMatchObject({ kind: "done", left: [] });
        expect((await place.look(span.project)).tree).toEqual(before.tree);
      }),
      { numRuns: 25, endOnFailure: true },
    );
  }, 300_000);
});

/** The times of folders that were there before are none of the changes: anything that is put into them sets them. */
function comparable({ tree, groups }: Picture, before: Picture): Picture {
  const timeless = Object.entries(tree).map(([path, seen]) =>
    isFolder(seen) && isFolder(before.tree[path]) ? [path, { ...seen, mtime: null }] : [path, seen],
  );
  return { tree: Object.fromEntries(timeless) as Picture["tree"], groups };
}

/**
 * Names of one file, as the overlay tells it. For an ordinary user's it may show two numbers for the two names of a file that was
 * copied up, though a write to one is seen under the other: then each is a group of its own with a link count above one.
 */
function expectLinks(now: Picture["groups"], seen: Picture["groups"]): void {
  const names = (groups: Picture["groups"]): string[] =>
    groups.flatMap((group) => group.split("\0")).toSorted();
  expect(names(now)).toEqual(names(seen));
  for (const group of seen) {
    const holder = now.find((one) => one.split("\0").includes(group.split("\0")[0] ?? ""));
    expect(holder?.split("\0")).toEqual(expect.arrayContaining(group.split("\0")));
  }
}

function isFolder(seen: Picture["tree"][string] | undefined): boolean {
  return seen !== undefined && (seen.mode & 0o170000) === 0o040000;
}
