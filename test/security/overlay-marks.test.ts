/** An overlay's marks are extended attributes: those that the kernel reads are believed, and those that a command sets are not. */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { ChangeReader, type LayerChange } from "../../world/overlay/change-reader.ts";
import { actors, currentUser } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { installationFor } from "../support/broker/installation.ts";
import { descendants } from "../support/processes/processes.ts";
import { recordSkip } from "../support/run/skips.ts";

/** `mark PATH NAME VALUE`: exits with the error number. */
const MARK = `#include <errno.h>
#include <string.h>
#include <sys/xattr.h>
int main(int count, char **words) {
  return count == 4 && setxattr(words[1], words[2], words[3], strlen(words[3]), 0) == 0 ? 0 : errno;
}
`;

let tools = "";
let mark = "";
beforeAll(() => {
  tools = mkdtempSync(join(tmpdir(), "sb-"));
  mark = join(tools, "mark");
  writeFileSync(`${mark}.c`, MARK);
  const made = spawnSync("cc", ["-O1", "-static", "-o", mark, `${mark}.c`]);
  if (made.status !== 0) throw new Error(`Cannot compile: ${made.stderr.toString()}`);
});
afterAll(() => rmSync(tools, { recursive: true }));

const POLICY = 'id: default\nname: Marks\nmode: enforce\ncommands: { isolated: ["sh *"] }\n';

describe.each(actors())("marks that a command sets, as $kind", (actor) => {
  let broker: TestBroker | undefined;
  afterEach(() => broker?.stop());

  test("hide nothing and delete nothing in the listing, and a folder made anew does", async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    for (const path of ["a/old", "a/b/older", "c/kept"]) broker.write(join(broker.project, path), path);
    spawnSync("cp", [mark, join(broker.project, "mark")]);
    const names = ["user.overlay.opaque", "trusted.overlay.opaque"];
    const forged = names.map((name) => `./mark a ${name} y; ./mark c ${name} x`).join("; ");
    const whiteout = "./mark c/new user.overlay.whiteout y; ./mark c/new trusted.overlay.whiteout y";
    broker.write(join(broker.project, "run.sh"), `echo x >a/new; : >c/new; ${forged}; ${whiteout}; true\n`);
    const ran = await broker.run("sh run.sh");
    expect(ran.fs_diff).toMatchObject({ writes: ["a/new", "c/new"], mods: [], deletes: [], dirs: [] });

    broker.write(join(broker.project, "run.sh"), "rm -r a; mkdir a; echo x >a/new\n");
    const anew = await broker.run("sh run.sh");
    expect(anew.fs_diff).toMatchObject({ writes: ["a/new"], deletes: ["a/b", "a/b/older", "a/old"] });
  });
});

/** As a root's overlay keeps them, and as an ordinary user's. */
const FORMS = [
  ["trusted", false],
  ["user", true],
] as const;

if (currentUser().uid !== 0)
  recordSkip({ what: "marks in a layer", why: "only root may write the marks of an overlay" });

describe.skipIf(currentUser().uid !== 0)("marks in a layer", () => {
  let folder = "";
  let reader: ChangeReader;
  beforeAll(async () => {
    const { root } = await installationFor(currentUser());
    reader = new ChangeReader(join(root, ".build/substrate-init"));
  });
  afterAll(() => reader.close());
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  function tree(files: readonly string[]): { upper: string; lower: string } {
    folder = mkdtempSync(join(tmpdir(), "sb-"));
    for (const file of files) {
      mkdirSync(join(folder, file, ".."), { recursive: true });
      writeFileSync(join(folder, file), file.endsWith("empty") ? "" : file);
    }
    return { upper: join(folder, "upper"), lower: join(folder, "lower") };
  }

  async function changes(of: { upper: string; lower: string }, userxattr: boolean): Promise<string[]> {
    const found: LayerChange[] = [];
    await reader.read({ ...of, userxattr }, AbortSignal.timeout(10_000), (change) => found.push(change));
    return found.map(({ kind, path }) => `${kind} ${path}`);
  }

  test.each(FORMS)(
    "of the form %s count where the kernel has read that form, and nowhere else",
    async (form, userxattr) => {
      const of = tree([
        "lower/a/old",
        "lower/c/gone-empty",
        "lower/c/kept",
        "upper/a/new",
        "upper/c/gone-empty",
        "upper/c/other-empty",
      ]);
      const set = (path: string, name: string, value: string): void => {
        const words = [join(of.upper, path), `${form}.overlay.${name}`, value];
        expect(spawnSync(mark, words).status).toBe(0);
      };
      set("a", "opaque", "y");
      // The form that needs no device (Linux 6.7): a mark on an empty file, in a folder that says that there are such.
      set("c", "opaque", "x");
      set("c/gone-empty", "whiteout", "y");
      expect(await changes(of, userxattr)).toEqual([
        "write a/new",
        "delete a/old",
        "delete c/gone-empty",
        "write c/other-empty",
      ]);
      expect(await changes(of, !userxattr)).toEqual(["write a/new", "write c/other-empty"]);
    },
  );

  test("a whiteout deletes a folder with all in it, and one of nothing deletes nothing", async () => {
    const of = tree(["lower/a/b/c", "lower/d", "upper/kept"]);
    for (const name of ["a", "nothing"]) spawnSync("mknod", [join(of.upper, name), "c", "0", "0"]);
    expect(await changes(of, false)).toEqual(["delete a", "delete a/b", "delete a/b/c", "write kept"]);
  });

  test("links, pipes and sizes in a layer lead nowhere, hold nothing up, and are what they are", async () => {
    const of = tree(["lower/d/below", "upper/file"]);
    writeFileSync(join(folder, "secret"), "secret");
    mkdirSync(join(of.upper, "d"));
    symlinkSync(folder, join(of.upper, "d/out"));
    symlinkSync(join(folder, "lower"), join(of.upper, "link"));
    spawnSync("mkfifo", [join(of.upper, "pipe")]);
    spawnSync("truncate", ["-s", "8E", join(of.upper, "sparse")]);
    spawnSync("truncate", ["-s", "1T", join(of.upper, "sparse")]);
    expect(await changes(of, false)).toEqual([
      "write d/out",
      "write file",
      "write link",
      "write pipe",
      "write sparse",
    ]);
  });

  test("a layer that is not there, or that a link leads to, is an error that names it", async () => {
    const of = tree(["lower/a", "upper/a"]);
    await expect(changes({ ...of, upper: `${of.upper}-none` }, false)).rejects.toThrow(/upper-none': ENOENT/);
    symlinkSync(of.upper, join(folder, "link"));
    await expect(changes({ ...of, upper: join(folder, "link") }, false)).rejects.toThrow(/link': ELOOP/);
    expect(await changes(of, false)).toEqual(["mod a"]);
  });

  test("many layers at once are read at once, one that is given up does not hold up others, and none is left", async () => {
    const of = tree(["lower/a", "upper/a", "upper/b"]);
    const all = await Promise.all(Array.from({ length: 12 }, () => changes(of, false)));
    for (const each of all) expect(each).toEqual(["mod a", "write b"]);
    const given = new AbortController();
    const cut = reader.read({ ...of, userxattr: false }, given.signal, () => {});
    given.abort(new Error("given up"));
    await expect(cut).rejects.toThrow("given up");
    expect(await changes(of, false)).toEqual(["mod a", "write b"]);
  });

  test("a reader that was killed while it waited is replaced before anybody notices", async () => {
    const of = tree(["lower/a", "upper/a"]);
    expect(await changes(of, false)).toEqual(["mod a"]);
    const readers = descendants(process.pid).filter(
      (pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0")[1] === "changes",
    );
    expect(readers.length).toBeGreaterThan(0);
    for (const pid of readers) process.kill(pid, "SIGKILL");
    expect(await changes(of, false)).toEqual(["mod a"]);
  });
});
