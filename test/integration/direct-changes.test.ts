import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { FsDiff } from "../../schemas/generated/types.ts";
import { type Actor, actors } from "../support/users/users.ts";
import { type Ran, TestBroker } from "../support/broker/broker.ts";
import { needs, needsOf } from "../support/run/needs.ts";

const POLICY = (seccomp: string): string => `id: default
name: x
mode: enforce
world: { seccomp: ${seccomp} }
commands: { isolated: ["sh isolated.sh"] }
`;

type Listed = Partial<Pick<FsDiff, "writes" | "mods" | "deletes" | "dirs" | "autorun">>;

/** What is made before, the command, and all that its diff must hold. */
type Case = readonly [what: string, before: string, cmd: string, listed: Listed];

const CASES: readonly Case[] = [
  ["nothing", "echo 1 > a", "cat a; ls; true", {}],
  ["a redirect", "echo 1 > a", "echo 2 > a; echo 3 > b", { writes: ["b"], mods: ["a"] }],
  ["an append of nothing", "echo 1 > a", ": >> a", {}],
  ["a truncation", "echo 1 > a", "truncate -s 0 a", { mods: ["a"] }],
  ["a file that came and went", "true", "echo 1 > a; rm a", {}],
  ["sed -i", "echo 1 > a", "sed -i s/1/2/ a", { mods: ["a"] }],
  ["mv of a file", "echo 1 > a", "mv a b", { writes: ["b"], deletes: ["a"] }],
  ["mv over a file", "echo 1 > a; echo 2 > b", "mv a b", { mods: ["b"], deletes: ["a"] }],
  [
    "mv of a folder",
    "mkdir -p d/e; echo 1 > d/e/f",
    "mv d g",
    { writes: ["g/e/f"], deletes: ["d", "d/e", "d/e/f"], dirs: ["g", "g/e"] },
  ],
  [
    "a folder that was moved away and made anew",
    "mkdir d; echo 1 > d/a; echo 1 > d/b",
    "mv d old; mkdir d; echo 2 > d/a",
    { writes: ["old/a", "old/b"], mods: ["d/a"], deletes: ["d/b"], dirs: ["old"] },
  ],
  ["a folder that was moved there and back", "mkdir d; echo 1 > d/a", "mv d e; mv e d", {}],
  [
    "a folder that was moved where another one had failed to be",
    "mkdir a b; echo 1 > a/f; echo 2 > b/f",
    "mv -T a b; mv b a/c; mv -T a b",
    { writes: ["b/c/f"], mods: ["b/f"], deletes: ["a", "a/f"], dirs: ["b/c"] },
  ],
  [
    "a file whose folder was closed at the first try",
    "mkdir d; echo 1 > d/f; chmod 600 d",
    "(echo 2 > d/f; echo 2 > d/g); chmod 700 d; echo 2 > d/f",
    { mods: ["d", "d/f"] },
  ],
  ["mkdir -p", "mkdir -p d/e", "mkdir -p d/e/f/g", { dirs: ["d/e/f", "d/e/f/g"] }],
  ["rm -rf", "mkdir -p d/e; echo 1 > d/e/f", "rm -rf d", { deletes: ["d", "d/e", "d/e/f"] }],
  ["a folder in a file's place", "echo 1 > a", "rm a; mkdir a", { dirs: ["a"] }],
  ["a file in a folder's place", "mkdir a", "rmdir a; echo 1 > a", { mods: ["a"] }],
  ["a hard link", "echo 1 > a", "ln a b", { writes: ["b"] }],
  ["a link, also one that leads nowhere", "true", "ln -s nowhere a; ln -s / b", { writes: ["a", "b"] }],
  ["a write through links", "echo 1 > a; ln -s a b; ln -s b c", "echo 2 > c", { mods: ["a"] }],
  ["a file made through a link", "ln -s d a", "echo 2 > a", { writes: ["d"] }],
  ["a path through a linked folder", "mkdir d; ln -s d e", "echo 1 > e/../e/a", { writes: ["d/a"] }],
  ["chmod", "echo 1 > a; mkdir d; echo 1 > b", "chmod 700 a d; chmod 644 b", { mods: ["a", "d"] }],
  [
    "cp -a",
    "mkdir -p d/e; echo 1 > d/e/f; ln -s f d/e/l",
    "cp -a d c",
    { writes: ["c/e/f", "c/e/l"], dirs: ["c", "c/e"] },
  ],
  ["tar", "mkdir d; echo 1 > d/f", "tar cf t d; rm -r d; tar xf t", { writes: ["t"], mods: ["d/f"] }],
  [
    "python",
    "echo 1 > a",
    `python3 -c "import os; os.rename('a','b'); os.mkfifo('p'); f=os.open('.',os.O_RDONLY); os.close(os.open('r',os.O_CREAT|os.O_WRONLY,dir_fd=f)); open('/proc/self/cwd/s','w')"`,
    { writes: ["b", "p", "r", "s"], deletes: ["a"] },
  ],
  ["a folder below", "mkdir d", "cd d; echo 1 > ../a; echo 2 > ./././b", { writes: ["a", "d/b"] }],
  ["elsewhere", "true", "echo 1 > /tmp/a; echo 1 > /dev/null; mkdir /tmp/b", {}],
  [
    "odd names",
    "true",
    String.raw`touch "$(printf 'a\nb')" "$(printf 'c\377d')" ' '`,
    { writes: [" ", "a\nb", "c\ufffdd"] },
  ],
  [
    "git commit",
    "git init -q; git config gc.auto 0; echo 1 > a; git add a",
    "git -c user.name=a -c user.email=a@example.org commit -qm x --date=2020-01-01 && test -f .git/refs/heads/*",
    { writes: expect.arrayContaining([".git/COMMIT_EDITMSG", ".git/logs/HEAD"]) },
  ],
  [
    "npm pkg set",
    `echo '{"name":"x"}' > package.json`,
    "npm pkg set version=1.0.0",
    { mods: ["package.json"], autorun: ["package.json"] },
  ],
];

function diffOf(ran: Ran): FsDiff {
  if (ran.fs_diff === null) throw new Error("Expected a diff, received none");
  return ran.fs_diff;
}

const NOTHING: Listed = { writes: [], mods: [], deletes: [], dirs: [], autorun: [] };

describe.each(actors())("writes straight to the project, as $kind", (actor: Actor) => {
  describe.each(["enforce", "log"])("with world.seccomp: %s", (seccomp) => {
    let broker: TestBroker;
    let made = 0;
    beforeAll(async () => {
      broker = await TestBroker.start(actor, { policies: { default: POLICY(seccomp) } });
    });
    afterAll(() => broker?.stop());

    /** Each in a folder of its own below the project, whose name is taken away again. */
    async function listed(
      before: string,
      cmd: string,
    ): Promise<{ readonly diff: Listed; readonly ran: Ran }> {
      made += 1;
      const folder = `case${made}`;
      await broker.run(`mkdir ${folder} && cd ${folder} && { ${before}; }`);
      const ran = await broker.run({ cmd, cwd: join(broker.project, folder) });
      expect(diffOf(ran), ran.stderr).toMatchObject({ held: false, truncated: false, summary: null });
      const own = (paths: readonly string[]) => paths.map((path) => path.replace(`${folder}/`, ""));
      const { writes, mods, deletes, dirs, autorun } = diffOf(ran);
      return {
        ran,
        diff: {
          writes: own(writes),
          mods: own(mods),
          deletes: own(deletes),
          dirs: own(dirs),
          autorun: own(autorun),
        },
      };
    }

    test.each(CASES)("%s is listed as what it is", async (what, before, cmd, wanted) => {
      needsOf(cmd);
      const { diff, ran } = await listed(before, cmd);
      expect(ran.exit, ran.stderr).toBe(0);
      if (what === "git commit") expect(diff).toMatchObject(wanted);
      else expect(diff).toEqual({ ...NOTHING, ...wanted });
    });
  });

  describe("one world", () => {
    let broker: TestBroker;
    beforeAll(async () => {
      broker = await TestBroker.start(actor, { policies: { default: POLICY("enforce") } });
    });
    afterAll(() => broker?.stop());

    test("commands at the same time do not see each other's changes", async () => {
      const names = Array.from({ length: 6 }, (_each, at) => `p${at}`);
      const runs = await Promise.all(
        names.map((name) => broker.run(`mkdir ${name}; for i in 1 2 3 4 5; do echo > ${name}/$i; done`)),
      );
      for (const [at, name] of names.entries()) {
        expect(runs[at]?.fs_diff).toMatchObject({
          writes: [1, 2, 3, 4, 5].map((number) => `${name}/${number}`),
          dirs: [name],
        });
      }
      expect(new Set(runs.map(({ world_id }) => world_id)).size).toBe(1);
    });

    test("an isolated command that does the same has the same hash", async () => {
      const script = "mkdir m; echo 1 > m/a; ln -s a m/b; echo 2 > old; rm gone; chmod 700 moded";
      const again = "rm -rf m; echo 1 > old; echo 1 > gone; echo 1 > moded; chmod 644 moded";
      broker.write(join(broker.project, "isolated.sh"), script);
      broker.write(join(broker.project, "direct.sh"), script);
      await broker.run(again);
      const isolated = await broker.run("sh isolated.sh");
      const direct = await broker.run("sh direct.sh");
      const { writes, mods, deletes, dirs, tree_hash } = diffOf(direct);
      expect(diffOf(isolated)).toMatchObject({ held: true, writes, mods, deletes, dirs });
      expect(writes).toEqual(["m/a", "m/b"]);
      expect(diffOf(isolated).tree_hash).toBe(tree_hash);
    });

    test("what a kept process does by the time of the reply is listed, and nothing of another command's", async () => {
      const kept = await broker.run({
        cmd: "echo 1 > first; (sleep 0.3; echo 1 > late) & :",
        background: "keep",
      });
      expect(diffOf(kept).writes).toEqual(["first"]);
      const next = await broker.run("while ! test -e late; do sleep 0.05; done; echo 1 > next");
      expect(diffOf(next).writes).toEqual(["next"]);
    });

    test("a command that is killed has its changes listed", async () => {
      const ran = await broker.run({ cmd: "echo 1 > before; sleep 30", timeout_ms: 1500 });
      expect(ran.timed_out).toBe(true);
      expect(diffOf(ran).writes).toEqual(["before"]);
    });

    test("a path of 4,096 bytes is listed, and one that is longer is said to be missing", async () => {
      needs("python3");
      const deep = await broker.run(
        `python3 -c "
import os
os.mkdir('deep'); os.chdir('deep')
while len(os.getcwd()) < 3800: os.mkdir('x'*200); os.chdir('x'*200)
open('y'*(4095-len(os.getcwd())-1), 'w')"`,
      );
      expect(deep.stderr).toBe("");
      expect(diffOf(deep)).toMatchObject({ truncated: false });
      expect(broker.project.length + 1 + (diffOf(deep).writes[0]?.length ?? 0)).toBe(4095);
      const deeper = await broker.run(
        `python3 -c "
import os
os.mkdir('deeper'); os.chdir('deeper')
for i in range(30): os.mkdir('x'*200); os.chdir('x'*200)
open('y', 'w')"`,
      );
      expect(diffOf(deeper)).toMatchObject({
        truncated: true,
        summary: expect.stringContaining("could not be read"),
        tree_hash: null,
      });
    });

    test("1,500 files are 1,000 in the list, a sentence and a hash", async () => {
      const ran = await broker.run("mkdir many; cd many; for i in $(seq 1500); do : > f$i; done");
      expect(diffOf(ran).writes.length).toBe(1000);
      expect(diffOf(ran).summary).toMatch(/^1500 files and 1 folders changed/);
      expect(diffOf(ran).tree_hash).toMatch(/^sha256:/);
      const span = await broker.span(ran.span_id);
      expect(span.fs_diff?.tree_hash ?? null).toBe(diffOf(ran).tree_hash);
    });

    test("a command that cannot start has changed nothing", async () => {
      const ran = await broker.run({ argv: ["./no-such-program"] });
      expect(diffOf(ran)).toMatchObject({ writes: [], truncated: false });
    });
  });
});
