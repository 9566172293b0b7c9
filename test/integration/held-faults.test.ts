import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { skip } from "../support/run/skips.ts";
import { type Deed, HeldPlace, type Picture } from "../support/held/place.ts";

const KILLS = 12;

/** Enough of everything that there is a moment between any two steps. */
function tree(text: string): Deed[] {
  const numbers = Array.from({ length: 60 }, (_, index) => index);
  return [
    { deed: "dir", path: "gone" },
    { deed: "dir", path: "both" },
    ...numbers.flatMap((number): Deed[] => [
      { deed: "file", path: `gone/${number}`, text },
      { deed: "file", path: `both/${number}`, text, mode: 0o644 },
    ]),
    { deed: "link", path: "pointer", text: "both" },
  ];
}

const CHANGES: readonly Deed[] = [
  { deed: "remove", path: "gone" },
  { deed: "dir", path: "new" },
  ...Array.from({ length: 60 }, (_, index): Deed[] => [
    { deed: "append", path: `both/${index}`, text: "changed" },
    { deed: "file", path: `new/${index}`, text: "new" },
    { deed: "file", path: `both/new-${index}`, text: "new" },
  ]).flat(),
  { deed: "chmod", path: "both", mode: 0o700 },
  { deed: "remove", path: "pointer" },
  { deed: "dir", path: "pointer" },
];

describe.each(actors())("an apply that is interrupted, as $kind", (actor) => {
  test("is finished or taken back after a kill at any moment, and so is an undo; nothing is left of it", async () => {
    await using place = await HeldPlace.open(actor);
    const outcomes = new Set<string>();
    let hit = 0;
    for (let round = 0; round < KILLS; round++) {
      const span = await place.project(`k${round}`, tree("before"));
      const before = await place.look(span.project);
      await place.isolated(span, CHANGES);
      await place.list(span);
      const undoing = round % 3 === 2;
      if (undoing) await place.apply(span);
      const after = undoing ? await place.look(span.project) : null;
      const work = (undoing ? place.undo(span) : place.apply(span)).catch(() => null);
      await new Promise((resolve) => setTimeout(resolve, 1 + Math.random() * 70));
      if (place.killApplier()) hit += 1;
      await work;
      await place.recover();
      const now = await place.look(span.project);
      expect(readdirSync(span.project).filter((name) => name.startsWith(".substrate"))).toEqual([]);
      if (same(now, before)) {
        outcomes.add("before");
        if (!undoing) expect(await place.apply(span)).toMatchObject({ kind: "done", left: [] });
      } else {
        outcomes.add("after");
        if (after !== null) expect(now).toEqual(after);
        expect(Object.keys(now.tree).filter((path) => path.startsWith("new/"))).toHaveLength(60);
        expect(await place.undo(span)).toMatchObject({ kind: "done", left: [] });
        expect(await place.look(span.project)).toEqual(before);
      }
    }
    expect(hit).toBeGreaterThan(KILLS / 3);
    expect(outcomes.size).toBeGreaterThan(0);
  }, 300_000);

  test("is whole, and is taken back, where the layers lie on another file system than the project", async () => {
    if (actor.uid !== 0) {
      skip(`layers on another file system, as ${actor.kind}`, "an ordinary user cannot mount one");
      return;
    }
    await using place = await HeldPlace.open(actor);
    const overlay = join(place.folder, "overlay");
    expect(spawnSync("mount", ["-t", "tmpfs", "none", overlay]).status).toBe(0);
    try {
      const span = await place.project("far", tree("before"));
      const before = await place.look(span.project);
      await place.isolated(span, CHANGES);
      expect(await place.apply(span)).toMatchObject({ kind: "done", left: [] });
      expect(await place.undo(span, ["both"])).toMatchObject({ kind: "done" });
      expect(await place.undo(span)).toMatchObject({ kind: "done", left: [] });
      expect(await place.look(span.project)).toEqual(before);
      expect(await place.apply(span)).toMatchObject({ kind: "done", left: [] });
    } finally {
      spawnSync("umount", ["-l", overlay]);
    }
  });

  test("goes through no link while folders are swapped for links all the time", async () => {
    await using place = await HeldPlace.open(actor);
    const outside = join(place.folder, "projects", "outside");
    await place.sh('mkdir "$1"; echo theirs > "$1/0"', outside);
    const endings = new Set<string>();
    for (let round = 0; round < 12; round++) {
      const span = await place.project(`swap${round}`, tree("before"));
      await place.isolated(span, CHANGES);
      await place.list(span);
      const script =
        'cd "$1"; while [ ! -e "$2" ]; do mv both aside; ln -s "$3" both; rm both; mv aside both; done';
      const stop = join(place.folder, "projects", `stop${round}`);
      const swapping = place.sh(script, span.project, stop, outside);
      for (let each = 0; each < 3; each++) endings.add((await place.apply(span)).kind);
      await place.sh(': > "$1"', stop);
      await swapping.catch(() => undefined);
      expect(await place.sh('ls "$1"; cat "$1/0"', outside)).toBe("0\ntheirs\n");
    }
    expect([...endings]).toContain("conflict");
  }, 120_000);

  test("takes names of any bytes, and folders as deep as a path can be long; deeper ones are refused", async () => {
    await using place = await HeldPlace.open(actor);
    const span = await place.project("deep", [{ deed: "dir", path: "d" }]);
    const layer = join(span.layers, "upper");
    await place.sh('mkdir "$1/d"; printf odd > "$1/$2"', layer, "odd \n\u001b[31m");
    const walk = (then: string, depth = 16): string[] => [
      "-e",
      `const fs = require("fs"); process.chdir(process.argv[1] + "/d");
      for (let i = 0; i < ${depth}; i++) { if (process.argv[2]) fs.mkdirSync("n".repeat(250)); process.chdir("n".repeat(250)); } ${then}`,
    ];
    const make = walk('fs.writeFileSync("end", "bottom")');
    const look = walk('process.stdout.write(fs.readFileSync("end"))');
    await place.sh('"$@"', process.execPath, ...make, layer, "make");
    expect(await place.apply(span)).toMatchObject({ kind: "done", left: [] });
    expect(await place.sh('"$@"', process.execPath, ...look, span.project)).toBe("bottom");
    expect(readFileSync(join(span.project, "odd \n\u001b[31m"), "utf8")).toBe("odd");
    expect(await place.undo(span)).toMatchObject({ kind: "done", left: [] });
    expect(readdirSync(span.project)).toEqual(["d"]);
    expect(readdirSync(join(span.project, "d"))).toEqual([]);

    const deeper = await place.project("deeper", [{ deed: "dir", path: "d" }]);
    const below = join(deeper.layers, "upper");
    await place.sh('mkdir "$1/d"; echo x > "$1/beside"', below);
    // A shell cannot go there.
    await place.sh('"$@"', process.execPath, ...walk('fs.writeFileSync("end", "bottom")', 20), below, "make");
    const ending = await place.apply(deeper);
    expect(ending).toMatchObject({ kind: "refused" });
    if (ending.kind !== "refused") return;
    expect(ending.refusals).toHaveLength(1);
    expect(ending.refusals[0]?.reason).toContain("the path is too long");
    expect(readdirSync(join(deeper.project, "d"))).toEqual([]);
    expect(await place.apply(deeper, ["beside"])).toMatchObject({ kind: "done", done: ["beside"] });
  });

  test("changes nothing where the disk is full at any step, and works once there is room", async () => {
    if (actor.uid !== 0) {
      skip(
        `a full disk under an apply, as ${actor.kind}`,
        "an ordinary user cannot mount a small file system",
      );
      return;
    }
    const disk = mkdtempSync(join(tmpdir(), "sb-small-"));
    expect(spawnSync("mount", ["-t", "tmpfs", "-o", "size=8m,nr_inodes=2500", "none", disk]).status).toBe(0);
    try {
      mkdirSync(join(disk, "here"));
      await fillAndApply(actor, join(disk, "here"));
    } finally {
      spawnSync("umount", ["-l", disk]);
      rmSync(disk, { recursive: true, force: true });
    }
  }, 300_000);

  test("leaves nothing in a project whose disk is full, however little it could make there", async () => {
    if (process.getuid?.() !== 0)
      return skip("an apply to a full disk", "only root can mount a small file system");
    await using place = await HeldPlace.open(actor);
    const projects = join(place.folder, "projects");
    const options = `nr_inodes=200,uid=${actor.uid},gid=${actor.gid}`;
    expect(spawnSync("mount", ["-t", "tmpfs", "-o", options, "none", projects]).status).toBe(0);
    try {
      const span = await place.project("full", []);
      await place.isolated(span, [{ deed: "file", path: "new", text: "new" }]);
      await place.list(span);
      const before = await place.look(span.project);
      const endings = [];
      for (let inodes = 0; endings.at(-1) !== "done" && inodes < 12; inodes += 1) {
        const script =
          'mkdir many; i=0; while true > "many/$i"; do i=$((i + 1)); done 2> /dev/null; cd many; rm -f $(ls | head -n "$1")';
        await place.sh(`cd projects; ${script}`, String(inodes));
        const ending = await place.apply(span);
        endings.push(ending.kind);
        await place.sh("rm -r projects/many");
        if (ending.kind === "done") break;
        expect(ending).toMatchObject({
          message: expect.stringContaining("No space left on device") as unknown,
        });
        expect(await place.look(span.project), `room for ${inodes}`).toEqual(before);
      }
      // The staging folder, what hides it, its two folders and the file: each of them is what there is no room for once.
      expect(endings.length).toBeGreaterThan(5);
      expect(endings.at(-1)).toBe("done");
      expect(readdirSync(span.project)).toEqual(["new"]);
    } finally {
      spawnSync("umount", ["-l", projects]);
    }
  });
});

/** From no room at all to enough, a little more each time. */
async function fillAndApply(actor: Parameters<typeof HeldPlace.open>[0], parent: string): Promise<void> {
  await using place = await HeldPlace.open(actor, parent);
  const span = await place.project("full", tree("before"));
  await place.isolated(span, CHANGES);
  await place.list(span);
  const before = await place.look(span.project);
  let failed = 0;
  let done = false;
  for (let room = 0; room <= 900 && !done; room += room < 60 ? 4 : 60) {
    // Inodes and not only bytes: either may run out first.
    const script =
      'rm -f fill; rm -rf many; dd if=/dev/zero of=fill bs=4k 2> /dev/null || true; truncate -s -"$1" fill';
    await place.sh(script, String(room * 4096));
    const ending = await place.apply(span);
    done = ending.kind === "done";
    await place.sh("rm -f fill");
    if (done) break;
    failed += 1;
    expect(ending).toMatchObject({ kind: "failed" });
    const now = await place.look(span.project);
    expect(now).toEqual(before);
  }
  expect(failed).toBeGreaterThan(3);
  expect(done).toBe(true);
  expect(await place.undo(span)).toMatchObject({ kind: "done", left: [] });
  expect(await place.look(span.project)).toEqual(before);
}

function same(one: Picture, other: Picture): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
