import { readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { type Deed, HeldPlace, type Span } from "../support/held/place.ts";

/** One of each kind of step: replaced, new, taken away, of another type, in a closed folder, with another mode. */
const TREE: readonly Deed[] = [
  { deed: "dir", path: "kept" },
  { deed: "file", path: "kept/edited", text: "before", mode: 0o640 },
  { deed: "file", path: "kept/gone", text: "before" },
  { deed: "dir", path: "gone" },
  { deed: "file", path: "gone/file", text: "before" },
  { deed: "link", path: "pointer", text: "kept" },
  { deed: "dir", path: "closed", mode: 0o700 },
  { deed: "file", path: "closed/edited", text: "before" },
  { deed: "chmod", path: "closed", mode: 0o500 },
  { deed: "file", path: "mode", text: "before", mode: 0o600 },
  { deed: "dir", path: "shut" },
  { deed: "file", path: "shut/file", text: "before" },
  { deed: "chmod", path: "shut", mode: 0o500 },
];

const CHANGES: readonly Deed[] = [
  { deed: "append", path: "kept/edited", text: " and after" },
  { deed: "remove", path: "kept/gone" },
  { deed: "file", path: "kept/new", text: "after" },
  { deed: "remove", path: "gone" },
  { deed: "dir", path: "new" },
  { deed: "file", path: "new/file", text: "after" },
  { deed: "remove", path: "pointer" },
  { deed: "dir", path: "pointer" },
  { deed: "chmod", path: "closed", mode: 0o700 },
  { deed: "append", path: "closed/edited", text: " and after" },
  { deed: "chmod", path: "closed", mode: 0o500 },
  { deed: "chmod", path: "mode", mode: 0o640 },
  { deed: "remove", path: "shut" },
];

/** More renames than one apply or undo of these changes makes. */
const MOST = 60;
const PATIENCE_MS = 300_000;

type Verb = "apply" | "undo";

describe.each(actors())("an apply that is killed at a rename, as $kind", (actor) => {
  /** A project whose changes are held, and for an undo applied. */
  async function prepared(place: HeldPlace, name: string, verb: Verb, closed = false): Promise<Span> {
    // Without a user namespace an ordinary user changes nothing in a folder that its mode closes.
    const mine = ({ path }: Deed): boolean => !(closed && path.startsWith("closed"));
    const span = await place.project(name, TREE.filter(mine));
    await place.isolated(span, CHANGES.filter(mine));
    await place.list(span);
    if (verb === "undo") expect(await place.apply(span)).toMatchObject({ kind: "done", left: [] });
    return span;
  }

  test.each<readonly [Verb, string, boolean]>([
    ["apply", "with", false],
    ["undo", "with", false],
    ["apply", "without", true],
  ])(
    "%s is whole or nothing whichever of its renames is the last, modes included, %s a user namespace",
    async (verb, _word, closed) => {
      await using place = await HeldPlace.open(actor, tmpdir(), closed);
      const ends = { same: 0, done: 0 };
      let rename = 0;
      for (let hit = true; hit; ) {
        rename += 1;
        expect(rename).toBeLessThan(MOST);
        const span = await prepared(place, `${verb}${rename}`, verb, closed);
        const before = await place.look(span.project);
        place.killer.arm(rename);
        await place[verb](span).catch(() => undefined);
        hit = place.killer.disarm();
        await place.recover();
        const now = await place.look(span.project);
        expect(readdirSync(span.project).filter((path) => path.startsWith(".substrate"))).toEqual([]);
        const isSame = JSON.stringify(trees(now)) === JSON.stringify(trees(before));
        ends[isSame ? "same" : "done"] += 1;
        // Done again, or taken back: either works only on a tree that is whole.
        const next = (verb === "apply") === isSame ? "apply" : "undo";
        expect(await place[next](span)).toMatchObject({ kind: "done", left: [] });
        const other = next === "apply" ? "undo" : "apply";
        expect(await place[other](span)).toMatchObject({ kind: "done", left: [] });
      }
      // Each rename was the last one once, and the run after it came through.
      expect(rename).toBeGreaterThan(10);
      expect(ends.same).toBeGreaterThan(5);
      expect(ends.done).toBeGreaterThan(0);
    },
    PATIENCE_MS,
  );

  test(
    "what a person writes after the kill stays where it is when the recovery takes the rest back",
    async () => {
      await using place = await HeldPlace.open(actor);
      let rename = 0;
      for (let hit = true; hit; ) {
        rename += 1;
        expect(rename).toBeLessThan(MOST);
        const span = await prepared(place, `person${rename}`, "apply");
        place.killer.arm(rename, true);
        await place.apply(span).catch(() => undefined);
        hit = place.killer.disarm();
        if (hit) place.restart();
        const said = `a person's ${rename}`;
        // In place, as an editor does it, and by rename; a name that is not there is made.
        await place.sh(
          'cd "$1"; echo "$2" > kept/edited; echo "$2" > .mine; mv .mine kept/new; mkdir -p gone; echo "$2" > gone/file',
          span.project,
          said,
        );
        const settled = await place.recover();
        expect(settled.length).toBe(hit ? 1 : 0);
        const texts = await place.sh('cd "$1"; cat kept/edited kept/new gone/file', span.project);
        expect(texts, `after a kill at rename ${rename}`).toBe(`${said}\n`.repeat(3));
      }
    },
    PATIENCE_MS,
  );
});

/** Without the times of folders: putting back a name sets them. */
function trees(picture: Awaited<ReturnType<HeldPlace["look"]>>): unknown {
  return Object.entries(picture.tree).map(([path, what]) => {
    const isFolder = (what.mode & 0o170000) === 0o040000;
    return [path, isFolder ? { ...what, mtime: null } : what];
  });
}
