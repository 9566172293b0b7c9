/** What isolated commands changed, as it is listed: beside two trees of which the one is what the same command made of the other. */
import { spawnSync } from "node:child_process";
import { lstatSync, mkdirSync, readFileSync, readdirSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bytesOf, rawPath, shownPath } from "../../world/overlay/names.ts";
import {
  type HashedChange,
  byPath,
  changeKind,
  contentDigest,
  treeHash,
} from "../../world/overlay/tree-hash.ts";
import { type Ran, TestBroker } from "../support/broker/broker.ts";
import { actors, runAs } from "../support/users/users.ts";

// What differs between two trees, found by looking at all of both: the slow and plain way to what a listing must say.

type Modes = ReadonlyMap<string, number>;

const POLICY = 'id: default\nname: Listed\nmode: enforce\ncommands: { isolated: ["sh *"] }\n';

/** Folders in folders, files, links and a file of another mode. */
const BEFORE = `
umask 022; mkdir -p a/b/c d e/f; for name in 1 a/2 a/b/3 a/b/c/4 d/5 e/f/6; do echo $name > $name; done
ln -s 1 link; ln -s a folder-link; chmod 640 d/5; chmod 700 e`;

describe.each(actors())("the listing of an isolated command, as $kind", (actor) => {
  let broker: TestBroker;
  let copy = "";
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    copy = join(broker.folder, "copy");
  });
  afterAll(() => broker.stop());

  /** A script on the project, held, and on a copy of it, for good. */
  async function both(script: string): Promise<{ ran: Ran; changes: readonly HashedChange[] }> {
    spawnSync("rm", ["-rf", copy, broker.project]);
    mkdirSync(broker.project);
    writeFileSync(join(broker.folder, "before.sh"), BEFORE);
    writeFileSync(join(broker.project, "run.sh"), `umask 022\n${script}\ntrue\n`);
    spawnSync("chown", ["-R", `${actor.uid}:${actor.gid}`, broker.folder]);
    await as(broker.project, `. ${join(broker.folder, "before.sh")}`);
    await as(broker.folder, `cp -a project copy`);
    await as(copy, "sh run.sh");
    const ran = await broker.run("sh run.sh");
    return { ran, changes: treeChanges(broker.project, copy) };
  }

  async function as(cwd: string, script: string): Promise<void> {
    const { code, stderr } = await runAs(actor, ["/bin/sh", "-c", script], { cwd, env: {}, stdin: "" });
    expect(code, stderr).toBe(0);
  }

  function expectSame(ran: Ran, changes: readonly HashedChange[]): void {
    const of = (kind: HashedChange["kind"]): string[] =>
      changes.filter((change) => change.kind === kind).map(({ path }) => shownPath(path));
    expect(ran.decision.verdict).toBe("isolate");
    expect(ran.fs_diff).toMatchObject({
      writes: of("write"),
      mods: of("mod"),
      deletes: of("delete"),
      dirs: of("dir"),
      held: changes.length > 0,
      truncated: false,
      summary: null,
      tree_hash: treeHash(changes),
    });
  }

  test.each([
    [
      "a file that was only opened, or touched, is no change",
      ": >>1; touch -a a/2; touch -d 2001-01-01 a/b/3; exec 3<>d/5",
      0,
    ],
    ["modes are changes of files and of folders", "chmod 600 1; chmod 711 a", 2],
    [
      "a file that got the same content is no change, one with other bytes of the same size is",
      "echo 1 >1; echo x >a/b/c/y; echo 6/f/e >e/f/6",
      2,
    ],
    ["a file becomes a link, a link a file", "rm 1; ln -s d 1; rm link; echo x >link", 2],
    [
      "a link is changed to lead elsewhere, and another one made anew as it was",
      "ln -sfn d folder-link; rm link; ln -s 1 link",
      1,
    ],
    ["a folder becomes a file: all that was in it is gone", "rm -r a; echo x >a", 6],
    ["a file becomes a folder", "rm 1; mkdir 1; echo x >1/new", 2],
    ["a link becomes a folder", "rm folder-link; mkdir folder-link; echo x >folder-link/new", 2],
    ["a folder becomes a link", "rm -r d; ln -s a d", 2],
    ["a folder becomes a link to itself", "rm -r a; ln -s a a", 6],
    ["a folder that is gone is gone with all that was in it", "rm -r a", 6],
    [
      "a folder made anew hides what was below it",
      "rm -r a; mkdir a; echo new >a/new; mkdir -p a/b; echo a/b/3 >a/b/3",
      4,
    ],
    ["a folder made anew with all that was in it is no change", "cp -a a x; rm -r a; mv x a", 0],
    ["moved files and folders are gone here and new there", "mv 1 one; mv a z; mv d/5 e/f", 16],
    ["hard links, fifos and empty files", "ln 1 again; mkfifo pipe; : >empty", 3],
    ["what is made and removed again was never there", "mkdir x; echo y >x/y; rm -r x; echo z >z; rm z", 0],
    [
      "names with newlines, quotes, and bytes that are no text",
      "echo x >\"$(printf 'new\\nline')\"; mkdir \"$(printf 'odd\\377')\"; echo x >\"$(printf 'odd\\377')/'\\\"\"",
      3,
    ],
  ])("%s", async (_title, script, count) => {
    const { ran, changes } = await both(script);
    expect(changes).toHaveLength(count);
    expectSame(ran, changes);
  });

  test("says of any changes of any tree what comparing all of it says", { timeout: 200_000 }, async () => {
    const path = fc.constantFrom(
      "1",
      "a",
      "a/2",
      "a/b",
      "a/b/3",
      "a/b/c",
      "d",
      "d/5",
      "e",
      "e/f",
      "x",
      "a/x",
      "x/y",
      "link",
      "folder-link",
    );
    const step = fc.oneof(
      fc.tuple(path, fc.constantFrom("", "short", "a/2")).map(([to, text]) => `echo '${text}' >${to}`),
      path.map((to) => `echo more >>${to}`),
      path.map((to) => `rm -rf ${to}`),
      path.map((to) => `mkdir -p ${to}`),
      fc.tuple(path, path).map(([from, to]) => `mv ${from} ${to}`),
      // A folder in itself is copied in whatever order its names are read.
      fc.tuple(path, path).map(([from, to]) => `[ -d ${from} ] || cp -a ${from} ${to}`),
      fc.tuple(path, path).map(([from, to]) => `ln -s ${from} ${to}`),
      // A folder that its owner may not enter is held, and said to be unread.
      fc
        .tuple(path, fc.constantFrom("600", "755", "644"))
        .map(([to, mode]) => `if [ -d ${to} ]; then chmod 711 ${to}; else chmod ${mode} ${to}; fi`),
      path.map((to) => `touch ${to}`),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
        const { ran, changes } = await both(steps.map((each) => `${each} 2>/dev/null`).join("\n"));
        expectSame(ran, changes);
      }),
      { numRuns: 15, endOnFailure: true },
    );
  });

  test("1,000 files and 100 folders are listed, all are hashed, and what runs by itself is found behind them", async () => {
    const make = (last: string): string =>
      `i=0; while [ $i -lt 1200 ]; do echo $i >n-$i; i=$((i+1)); done
       i=0; while [ $i -lt 120 ]; do mkdir f-$i; i=$((i+1)); done; echo '${last}' >z.txt; echo x >zz.envrc; mkdir zz; echo x >zz/.envrc`;
    const first = await both(make("one"));
    expect(first.ran.fs_diff).toMatchObject({ truncated: true, autorun: ["zz/.envrc"], held: true });
    expect(first.ran.fs_diff?.writes).toHaveLength(1000);
    expect(first.ran.fs_diff?.dirs).toHaveLength(100);
    expect(first.ran.fs_diff?.summary).toContain("1203 files and 121 folders changed");
    const told = "Changes are held, not yet in the project: 1203 written, 0 modified, 0 deleted";
    expect(first.ran.hint).toContain(`${told}; no later command`);
    expect(first.ran.notices).toMatchObject([{ kind: "held", message: told, count: 1324 }]);
    expect(first.ran.fs_diff?.tree_hash).toBe(treeHash(first.changes));
    const again = await both(make("one"));
    expect(again.ran.fs_diff?.tree_hash).toBe(first.ran.fs_diff?.tree_hash);
    const other = await both(make("One"));
    expect(other.ran.fs_diff?.tree_hash).not.toBe(first.ran.fs_diff?.tree_hash);
  });

  test("paths of 4,096 bytes are listed and hashed; what lies deeper is held, and said to be unread", async () => {
    const name = "n".repeat(250);
    // 16 names of 250 bytes with their slashes, and one that fills it up.
    const deep = `i=0; while [ $i -lt 16 ]; do mkdir ${name} && cd ${name}; i=$((i+1)); done`;
    const fits = "f".repeat(4096 - 16 * 251);
    const held = async (script: string): Promise<Ran> => {
      broker.write(join(broker.project, "run.sh"), `umask 022\n${script}\ntrue\n`);
      return await broker.run("sh run.sh");
    };
    const folders = Array.from({ length: 16 }, (_, at) =>
      Array.from({ length: at + 1 }, () => name).join("/"),
    );
    const file = `${folders.at(-1)}/${fits}`;
    expect(file).toHaveLength(4096);
    const content = contentDigest(Buffer.from("x\n"));
    const changes = [
      ...folders.map((path) => ({ path, kind: "dir", mode: 0o040_755, content: "" }) as const),
      { path: file, kind: "write", mode: 0o100_644, content } as const,
    ];
    const ran = await held(`${deep}; echo x >${fits}`);
    expect(ran.fs_diff).toMatchObject({ writes: [file], dirs: folders, summary: null, held: true });
    expect(ran.fs_diff?.tree_hash).toBe(treeHash(changes));
    const deeper = { ran: await held(`${deep}; echo x >${fits}f`) };
    expect(deeper.ran.fs_diff).toMatchObject({ tree_hash: null, truncated: true, held: true });
    expect(deeper.ran.fs_diff?.summary).toContain("1 paths cannot be read");
  });
});

/** The changes from `before` to `after`, by the bytes of their paths. */
function treeChanges(before: string, after: string): readonly HashedChange[] {
  const [old, now] = [bytesOf(before), bytesOf(after)];
  const [olds, nows] = [modesBelow(old), modesBelow(now)];
  const paths = new Set([...olds.keys(), ...nows.keys()]);
  return [...paths]
    .flatMap((path) => {
      const same = (): boolean => contentOf(join(old, path)) === contentOf(join(now, path));
      const mode = nows.get(path);
      const kind = changeKind(olds.get(path), mode, same);
      if (kind === undefined) return [];
      return [{ path, kind, mode: mode ?? 0, content: mode === undefined ? "" : contentOf(join(now, path)) }];
    })
    .sort(byPath);
}

/** By path: found by going down folders only, since a name beyond a link that took a folder's place is none of the tree. */
function modesBelow(root: string): Modes {
  const modes = new Map<string, number>();
  const waiting = [""];
  for (let below = waiting.pop(); below !== undefined; below = waiting.pop()) {
    for (const name of readdirSync(rawPath(join(root, below)), { encoding: "latin1" })) {
      const path = join(below, name);
      const stat = lstatSync(rawPath(join(root, path)));
      modes.set(path, stat.mode);
      if (stat.isDirectory()) waiting.push(path);
    }
  }
  return modes;
}

function contentOf(path: string): string {
  const stat = lstatSync(rawPath(path));
  if (stat.isFile()) return contentDigest(readFileSync(rawPath(path)));
  return stat.isSymbolicLink() ? contentDigest(readlinkSync(rawPath(path), { encoding: "buffer" })) : "";
}
