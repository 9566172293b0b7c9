import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { type Deed, HeldPlace, type Span } from "../support/held/place.ts";

const TREE: readonly Deed[] = [
  { deed: "dir", path: "d" },
  { deed: "file", path: "d/f", text: "old\n" },
  { deed: "file", path: "conf", text: "limit=10\n" },
  { deed: "file", path: "run.sh", text: "echo before\n" },
  { deed: "dir", path: "box" },
  { deed: "dir", path: "box/shut" },
  { deed: "file", path: "box/shut/file", text: "old\n" },
];

/** Attributes alone, of files and of a folder, and the times of folders around what is replaced and taken away. */
const CHANGES: readonly Deed[] = [
  { deed: "append", path: "d/f", text: "new\n" },
  { deed: "chmod", path: "conf", mode: 0o755 },
  { deed: "chmod", path: "run.sh", mode: 0o755 },
  { deed: "chmod", path: "box", mode: 0o750 },
  { deed: "remove", path: "box/shut" },
];

/** A content of the same size, another mode with another content, modes and a list of who may: on a name each. */
const EDITS = `
cd "$1"
printf 'limit=99\\n' > conf
echo 'echo mine' > run.sh; chmod 600 run.sh
chmod 700 d; echo mine > d/mine
if command -v setfacl > /dev/null; then setfacl -m u:12345:rx d || :; fi
chmod 711 box
if [ -d box/shut ]; then chmod 711 box/shut; fi
`;

const LOOK = `
cd "$1"
stat -c '%n %a %u:%g %s %y' conf run.sh
stat -c '%n %a %u:%g' d box
if command -v getfacl > /dev/null; then getfacl -n d; fi
if [ -d box/shut ]; then stat -c '%n %a' box/shut; fi
cat conf run.sh d/mine
`;

const LISTED = `cd "$1"; if command -v getfacl > /dev/null; then getfacl -n d conf box; fi`;
const TIMES = `cd "$1"; stat -c %Y%y d box . | tr -dc '0-9\\n'`;

/** More renames than one apply of these changes makes. */
const MOST = 30;
const PATIENCE_MS = 120_000;

describe.each(actors())("a recovery after a kill in the middle of an apply, as $kind", (actor) => {
  async function prepared(place: HeldPlace, name: string): Promise<Span> {
    const span = await place.project(name, TREE);
    const list =
      'cd "$1"; if command -v setfacl > /dev/null; then setfacl -m "u:$(id -u):rwx" conf box d || :; fi';
    await place.sh(list, span.project);
    await sleep(12);
    const held = { ...span, mountedAt: String(BigInt(Date.now()) * 1_000_000n) };
    await place.isolated(held, CHANGES);
    await place.list(held);
    return held;
  }

  /** Kills apply and broker at this rename; false: the apply had fewer. */
  async function killed(place: HeldPlace, span: Span, rename: number): Promise<boolean> {
    expect(rename).toBeLessThan(MOST);
    place.killer.arm(rename, true);
    await place.apply(span).catch(() => undefined);
    const hit = place.killer.disarm();
    if (hit) place.restart();
    return hit;
  }

  test(
    "leaves the contents, modes, access lists and times that a person set since, and names them",
    async () => {
      await using place = await HeldPlace.open(actor);
      let excepted = 0;
      for (let rename = 1; ; rename += 1) {
        const span = await prepared(place, `edited${rename}`);
        if (!(await killed(place, span, rename))) break;
        await sleep(100);
        await place.sh(EDITS, span.project);
        const before = await place.sh(LOOK, span.project);
        const times = await place.sh(TIMES, span.project);
        const said = (await place.recover()).map(({ message }) => message).join("\n");
        const after = await place.sh(LOOK, span.project);
        // What was removed and comes back does so with its old mode.
        expect(without(after, before, "box/shut"), `killed at rename ${rename}: ${said}`).toBe(before);
        expectNoneEarlier(times, await place.sh(TIMES, span.project));
        if (!said.startsWith("Reverted")) continue;
        if (said.includes("except for")) {
          excepted += 1;
          for (const path of ["'conf'", "'run.sh'", "'box'"]) expect(said).toContain(path);
          expect(said).not.toContain("'d'");
        }
        const again = await place.apply(span);
        expect(again).toMatchObject({ kind: "conflict" });
        const paths = again.kind === "conflict" ? again.conflicts.map(({ path }) => path) : [];
        expect(paths).toEqual(expect.arrayContaining(["conf", "run.sh"]));
        expect(await place.sh('cat "$1/conf"', span.project)).toBe("limit=99\n");
      }
      expect(excepted).toBeGreaterThan(2);
    },
    PATIENCE_MS,
  );

  test(
    "puts all of it back where nobody edited anything: modes, access lists, and times of folders too",
    async () => {
      await using place = await HeldPlace.open(actor);
      let reverted = 0;
      for (let rename = 1; ; rename += 1) {
        const span = await prepared(place, `alone${rename}`);
        const before = await place.look(span.project);
        const lists = await place.sh(LISTED, span.project);
        if (!(await killed(place, span, rename))) break;
        const said = (await place.recover()).map(({ message }) => message).join("\n");
        if (!said.startsWith("Reverted")) continue;
        reverted += 1;
        expect(said).not.toContain("except for");
        expect(await place.look(span.project), `killed at rename ${rename}`).toEqual(before);
        expect(await place.sh(LISTED, span.project)).toBe(lists);
        expect(await place.apply(span)).toMatchObject({ kind: "done", left: [] });
      }
      expect(reverted).toBeGreaterThan(4);
    },
    PATIENCE_MS,
  );
});

/** The lines of `after` that name a path only if `before` has one of it too. */
function without(after: string, before: string, path: string): string {
  if (before.includes(`${path} `)) return after;
  const lines = after.split("\n").filter((line) => !line.startsWith(`${path} `));
  return lines.join("\n");
}

function expectNoneEarlier(before: string, after: string): void {
  const [one, other] = [before, after].map((text) => text.trim().split("\n").map(BigInt));
  for (const [index, time] of (one ?? []).entries()) expect(other?.[index]).toBeGreaterThanOrEqual(time);
}
