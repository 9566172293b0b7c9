import { existsSync, readdirSync, renameSync, rmSync } from "node:fs";
import { release } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Actor, actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { linuxSince, needs } from "../support/run/needs.ts";
import { skip } from "../support/run/skips.ts";

/** One process that gives the same names to other folders in every way there is, and makes a file under each. */
const WANDERER = `
import os, random, sys
random.seed(int(sys.argv[1]))
top = os.getcwd()
os.mkdir('a'); os.mkdir('b'); os.mkdir('a/d'); os.mkdir('b/d'); os.symlink('a', 'l')
here, held, made = os.open('.', os.O_RDONLY), os.open('a', os.O_RDONLY), 0
def write(path, **more):
    global made
    made += 1
    os.close(os.open('%s/f%d' % (path, made), os.O_CREAT | os.O_WRONLY, 0o644, **more))
def swap():
    for one, other in ('a', 'c'), ('b', 'a'), ('c', 'b'): os.rename(top + '/' + one, top + '/' + other)
def relink():
    to = 'b' if os.readlink('l') == 'a' else 'a'
    os.unlink('l'); os.symlink(to, 'l')
def at(folder, *steps):
    os.chdir(folder)
    for step in steps: step()
    os.fchdir(here)
def hold():
    os.dup2(os.open(random.choice(['a', 'b', 'l/d']), os.O_RDONLY), held)
STEPS = [swap, relink, hold,
    lambda: at(random.choice(['a', 'b', 'l', 'a/d']), lambda: write('.'), lambda: write('.')),
    lambda: at('a/d', lambda: write('.'), swap, lambda: write('.')),
    lambda: at('a', lambda: write('d'), lambda: write('../b/d')),
    lambda: [write(random.choice(['a', 'b', 'l', 'a/d', 'l/d'])) for _ in range(3)],
    lambda: [write('d', dir_fd=held) if os.path.isdir('/proc/self/fd/%d/d' % held) else write('.', dir_fd=held) for _ in range(2)],
    lambda: [write(top + random.choice(['/a', '/l/d', '/b/../a'])) for _ in range(2)]]
for _ in range(120): random.choice(STEPS)()
os.unlink('l')
`;

/** What procfs calls its own, and what another process would find under the same words: here and at each of its descriptors. */
const OWN_FOLDERS = `
import os
def write(path):
    try: os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))
    except OSError: pass
top = os.getcwd()
for own in '/proc/self/cwd', '/proc/thread-self/cwd':
    os.chdir('/'); write(own + '/nowhere')
    os.chdir(top); write(own + '/' + own.split('/')[2])
os.mkdir('a'); os.mkdir('b')
a, b = os.open('a', os.O_RDONLY), os.open('b', os.O_RDONLY)
for fd in range(max(a, b) + 1, 64):
    for folder in a, b:
        os.dup2(folder, fd); write('/proc/self/fd/%d/%d' % (fd, fd))
`;

/** Names, no more than are listed, by one thread in a folder whose parent another thread gives one name after the other. */
const MOVED_MEANWHILE = `
import os, threading, time
os.makedirs('0/d')
folder, stop = os.open('0/d', os.O_RDONLY), threading.Event()
def write():
    made = 0
    while made < 900 and not stop.is_set():
        made += 1
        os.close(os.open(str(made), os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=folder))
writer = threading.Thread(target=write)
writer.start()
for name in range(12):
    time.sleep(0.006)
    os.rename(str(name), str(name + 1))
stop.set()
writer.join()
`;

/** One name on its way for each time that the folder is moved. */
const MOVED_MEANWHILE_MAX = 12;

const ROUNDS = 8;

/** SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP. */
const WAKES_NEAR = linuxSince(6, 6);

/** As the listing of a command has them: what is below a folder, files and folders apart. */
function below(folder: string): { readonly writes: string[]; readonly dirs: string[] } {
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true });
  const pathsOf = (folders: boolean): string[] =>
    entries
      .filter((entry) => entry.isDirectory() === folders)
      .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
      .toSorted();
  return { writes: pathsOf(false), dirs: pathsOf(true) };
}

/** Where PID 1 may run, as one process sees it that has written this often and started nobody in between. */
const PLACES_OF_INIT =
  "while read key value; do case $key in Cpus_allowed_list:) echo $value; esac; done </proc/1/status";

describe.each(actors())("one process that writes much, as $kind", (actor: Actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor);
    broker.write(join(broker.project, "wanderer.py"), WANDERER);
    broker.write(join(broker.project, "own.py"), OWN_FOLDERS);
    broker.write(join(broker.project, "moved.py"), MOVED_MEANWHILE);
  });
  afterAll(() => broker?.stop());

  test.each(Array.from({ length: ROUNDS }, (_each, seed) => seed + 1))(
    "a name that comes to lead to another folder is listed where it led (seed %i)",
    async (seed) => {
      needs("python3");
      const ran = await broker.run(`mkdir w${seed} && cd w${seed} && exec python3 ../wanderer.py ${seed}`);
      expect(ran.exit, ran.stderr).toBe(0);
      const made = below(join(broker.project, `w${seed}`));
      expect(made.writes.length).toBeGreaterThan(80);
      const under = (paths: readonly string[]) => paths.map((path) => `w${seed}/${path}`);
      expect(ran.fs_diff).toMatchObject({
        writes: under(made.writes).toSorted(),
        dirs: [`w${seed}`, ...under(made.dirs)],
        truncated: false,
      });
    },
  );

  test("a name in a folder that procfs has for each process is listed where it led the one that used it", async () => {
    needs("python3");
    const ran = await broker.run("mkdir own && cd own && exec python3 ../own.py");
    expect(ran.exit, ran.stderr).toBe(0);
    const made = below(join(broker.project, "own")).writes.map((path) => `own/${path}`);
    expect(made).toEqual(expect.arrayContaining(["own/self", "own/thread-self", "own/a/60", "own/b/60"]));
    expect(ran.fs_diff?.writes).toEqual(made);
  });

  test("what is made while another thread moves the folder above is listed under its last name alone", async () => {
    needs("python3");
    const ran = await broker.run("mkdir moved && cd moved && exec python3 ../moved.py");
    expect(ran.exit, ran.stderr).toBe(0);
    const made = below(join(broker.project, "moved")).writes.map((path) => `moved/${path}`);
    expect(made.length).toBeGreaterThan(MOVED_MEANWHILE_MAX);
    expect(ran.fs_diff?.deletes.length).toBeLessThanOrEqual(MOVED_MEANWHILE_MAX);
    expect(ran.fs_diff).toMatchObject({ writes: made, truncated: false });
  });

  test("a folder that somebody else gives another name is listed under it", async () => {
    const running = broker.run(
      "mkdir -p o/d && cd o && : >d/1 && : >d/2 && while ! test -e d/go; do sleep 0.02; done && : >d/3 && : >d/4",
    );
    const project = broker.project;
    await expect.poll(() => existsSync(join(project, "o/d/2")), { timeout: 10_000 }).toBe(true);
    // A name that is given while the call that made a file is still being looked at is found by neither.
    await sleep(200);
    renameSync(join(project, "o"), join(project, "p"));
    broker.write(join(project, "p/d/go"), "");
    const ran = await running;
    expect(ran.exit, ran.stderr).toBe(0);
    expect(ran.fs_diff?.writes).toEqual(expect.arrayContaining(["p/d/3", "p/d/4"]));
    expect(ran.fs_diff).toMatchObject({ truncated: true, summary: expect.stringContaining("'o'") });
  });

  test.each([
    ["that a person moves", "renamed", ":"],
    ["that a command made there and a person moves", "made/renamed", "mkdir -p made/renamed"],
    ["that a command moved and a person moves again", "second", "mv first second"],
  ])("of changes in a folder %s nobody says that they are all", async (_whose, folder, first) => {
    broker.write(join(broker.project, "renamed/there"), "");
    broker.write(join(broker.project, "first/there"), "");
    const running = broker.run(`${first} && : >${folder}/ready && while ! test -e go; do sleep 0.02; done`);
    await expect
      .poll(() => existsSync(join(broker.project, folder, "ready")), { timeout: 10_000 })
      .toBe(true);
    renameSync(join(broker.project, folder), join(broker.project, "elsewhere"));
    broker.write(join(broker.project, "go"), "");
    const { fs_diff } = await running;
    rmSync(join(broker.project, "elsewhere"), { recursive: true });
    rmSync(join(broker.project, "go"));
    expect(fs_diff?.truncated).toBe(true);
    expect(fs_diff?.summary).toBe(`another program moved or removed '${folder}', which had changes inside`);
  });

  test("its twin: what a command moves and removes itself is all", async () => {
    const ran = await broker.run(
      "mkdir -p t/a/b && : >t/a/b/c && mv t/a t/z && : >t/z/b/d && mv t u && rm -r u && mkdir -p k/l && : >k/l/m && mv k/l n && rmdir k && rm -r n",
    );
    expect(ran).toMatchObject({ exit: 0, fs_diff: { truncated: false, writes: [], dirs: [] } });
  });

  test("PID 1 stays on one processor for as long as one process alone calls, and no longer", async () => {
    const many = "i=0; while [ $i -lt 40 ]; do : >n$i; i=$((i+1)); done";
    const { stdout } = await broker.run(
      `${PLACES_OF_INIT}; ${many}; ${PLACES_OF_INIT}; /bin/true; ${PLACES_OF_INIT}; ${many}`,
    );
    const [first, alone, together] = stdout.trim().split("\n");
    expect(together).toBe(first);
    const after = await broker.run(PLACES_OF_INIT);
    expect(after.stdout.trim()).toBe(first);
    if (!WAKES_NEAR)
      return skip(`PID 1 on one processor, as ${actor.kind}`, `Linux ${release()} cannot be asked for it`);
    expect(alone).toMatch(/^\d+$/);
    expect(first?.split(/[-,]/)).toContain(alone);
  });
});
