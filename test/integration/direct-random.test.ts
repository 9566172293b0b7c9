import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Actor } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { actorsWith } from "../support/run/needs.ts";

/**
 * Changes a small tree at random, a third of the steps in a process of their own; much of what it tries fails. Folders that it
 * closed are open at the end, or nobody but root could list them.
 */
const CHANGER = `
import os, random, sys
dice = random.Random(int(sys.argv[1]))
def path(): return '/'.join(dice.choice('abcd') for _ in range(dice.randint(1, 3)))
def write(path, flags=0, **more):
    f = os.open(path, os.O_CREAT | os.O_WRONLY | flags, 0o644, **more)
    os.write(f, str(dice.randint(0, 3)).encode()); os.close(f)
def hold():
    n = os.open(path(), os.O_RDONLY | os.O_DIRECTORY)
    if n != 20: os.dup2(n, 20); os.close(n)
STEPS = [lambda: os.rename(path(), path())] * 4 + [lambda: os.mkdir(path())] * 3 + [lambda: write(path(), os.O_TRUNC)] * 3 + [
    lambda: write(path(), os.O_APPEND), lambda: write(path(), os.O_EXCL), lambda: write('/proc/self/cwd/' + path(), os.O_TRUNC),
    lambda: write(os.getcwd() + '/' + path()), hold, lambda: write(dice.choice('abcd'), dir_fd=20),
    lambda: os.unlink(path()), lambda: os.rmdir(path()), lambda: os.symlink('zz', path()),
    lambda: os.chmod(path(), dice.choice([0o600, 0o700, 0o755, 0o644])), lambda: os.truncate(path(), 1)]
for _ in range(int(sys.argv[2])):
    step = dice.choice(STEPS)
    child = os.fork() if dice.randrange(3) == 0 else None
    if child: os.waitpid(child, 0); continue
    try: step()
    except OSError: pass
    if child == 0: os._exit(0)
for folder in os.walk('.'):
    for name in folder[1]:
        if not os.path.islink(folder[0] + '/' + name): os.chmod(folder[0] + '/' + name, 0o755)
`;

const ROUNDS = 12;
const STEPS = 120;

type Entry = { readonly type: number; readonly mode: number; readonly content: string };

function treeAt(folder: string): ReadonlyMap<string, Entry> {
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true });
  return new Map(
    entries.map((entry) => {
      const path = join(entry.parentPath, entry.name);
      const { mode } = lstatSync(path);
      const content = entry.isFile()
        ? readFileSync(path, "latin1")
        : entry.isSymbolicLink()
          ? readlinkSync(path)
          : "";
      return [path.slice(folder.length + 1), { type: mode & 0o170000, mode, content }];
    }),
  );
}

const FOLDER = 0o040000;

/** As a listing has them. What was written with the bytes that it had may be listed too. */
function changesBetween(before: ReadonlyMap<string, Entry>, after: ReadonlyMap<string, Entry>) {
  const paths = [...new Set([...before.keys(), ...after.keys()])].toSorted();
  const which = (is: (old: Entry | undefined, now: Entry | undefined) => boolean): string[] =>
    paths.filter((path) => is(before.get(path), after.get(path)));
  const becameFolder = (old?: Entry, now?: Entry): boolean => now?.type === FOLDER && old?.type !== FOLDER;
  const isOther = (old: Entry, now: Entry): boolean => old.mode !== now.mode || old.content !== now.content;
  return {
    writes: which((old, now) => old === undefined && now !== undefined && now.type !== FOLDER),
    mods: which(
      (old, now) => old !== undefined && now !== undefined && isOther(old, now) && !becameFolder(old, now),
    ),
    deletes: which((old, now) => old !== undefined && now === undefined),
    dirs: which(becameFolder),
  };
}

describe.each(actorsWith("python3"))("a tree that is changed at random, as $kind", (actor: Actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor);
    broker.write(join(broker.project, "changer.py"), CHANGER);
  });
  afterAll(() => broker?.stop());

  test.each(Array.from({ length: ROUNDS }, (_each, seed) => seed + 1))(
    "is listed as what it became (seed %i)",
    async (seed) => {
      const folder = join(broker.project, `r${seed}`);
      const change = (each: number, steps: number) =>
        broker.run(`cd r${seed} && exec python3 ../changer.py ${each} ${steps}`);
      await broker.run(`mkdir r${seed}`);
      await change(1000 + seed, 60);
      const before = treeAt(folder);
      const ran = await change(seed, STEPS);
      expect(ran.exit, ran.stderr).toBe(0);
      expect(ran.fs_diff).toMatchObject({ truncated: false, summary: null });
      const { writes, mods, deletes, dirs } = changesBetween(before, treeAt(folder));
      const own = (paths: readonly string[] = []) => paths.map((path) => path.slice(`r${seed}/`.length));
      expect(own(ran.fs_diff?.writes)).toEqual(writes);
      expect(own(ran.fs_diff?.deletes)).toEqual(deletes);
      expect(own(ran.fs_diff?.dirs)).toEqual(dirs);
      expect(own(ran.fs_diff?.mods)).toEqual(expect.arrayContaining(mods));
    },
  );
});
