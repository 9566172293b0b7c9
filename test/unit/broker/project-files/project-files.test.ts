import { execFileSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { DirtyFiles } from "../../../../broker/project-files/dirty-files.ts";
import { changedFiles, Patience } from "../../../../broker/replay/compare-changes.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "substrate-files-"));
});
// Paths may be longer than one call takes.
afterEach(() => execFileSync("rm", ["-rf", folder]));

describe("files that changed since", () => {
  test("are named by their ctime, whatever their mtime says, and git's own folder is not looked at", async () => {
    mkdirSync(join(folder, ".git"));
    mkdirSync(join(folder, "sub"));
    for (const name of ["old", "sub/edited", "sub/back"]) writeFileSync(join(folder, name), "1");
    await sleep(30);
    const since = Date.now();
    await sleep(30);
    writeFileSync(join(folder, "sub/edited"), "2");
    writeFileSync(join(folder, ".git/index"), "x");
    utimesSync(join(folder, "sub/back"), 1, 1);
    const { paths, complete } = await changedFiles(
      { project: folder, since: () => since, mayTell: () => true },
      new Patience(),
    );
    expect(paths).toEqual(["sub/back", "sub/edited"]);
    expect(complete).toBe(true);
  });

  test("are not looked for through links, and what may not be told is not", async () => {
    const outside = mkdtempSync(join(tmpdir(), "substrate-outside-"));
    try {
      writeFileSync(join(outside, "key"), "1");
      mkdirSync(join(folder, "secret"));
      writeFileSync(join(folder, "secret/plan"), "1");
      writeFileSync(join(folder, "open"), "1");
      symlinkSync(outside, join(folder, "link"));
      const asked = {
        project: folder,
        since: () => 0,
        mayTell: (path: string) => !path.startsWith("secret"),
      };
      expect((await changedFiles(asked, new Patience())).paths).toEqual(["./", "link", "open"]);
      // The project itself has become a link to another place.
      const swapped = join(outside, "project");
      symlinkSync(folder, swapped);
      expect(await changedFiles({ ...asked, project: swapped }, new Patience())).toMatchObject({
        paths: [],
        unread: 1,
        state: null,
      });
    } finally {
      rmSync(outside, { recursive: true, force: true });
    }
  });

  test("are said to be unknown where they cannot be looked at: a name that is no text, a place too deep", async () => {
    const asked = { project: folder, since: () => 0, mayTell: () => true };
    writeFileSync(join(folder, "plain"), "1");
    expect(await changedFiles(asked, new Patience())).toMatchObject({ unread: 0, complete: true });
    writeFileSync(Buffer.concat([Buffer.from(`${folder}/`), Buffer.from("odd\xff", "latin1")]), "1");
    const name = "n".repeat(250);
    const deep = `for (let at = 0; at < 20; at++) { fs.mkdirSync("${name}"); process.chdir("${name}"); }`;
    execFileSync(process.execPath, ["-e", deep], { cwd: folder });
    const { unread, paths, state } = await changedFiles(asked, new Patience());
    expect({ unread, state }).toEqual({ unread: 2, state: null });
    expect(paths).toContain("plain");
    const files = new DirtyFiles();
    files.began(folder);
    files.ended(folder);
    await sleep(1000);
    expect(files.of(folder)).toBeNull();
  });

  test("are not looked for without end", async () => {
    for (let number = 0; number < 30; number += 1) {
      mkdirSync(join(folder, `${number}`));
      for (let file = 0; file < 300; file += 1) writeFileSync(join(folder, `${number}/${file}`), "");
    }
    const patience = new Patience();
    const looking = changedFiles({ project: folder, since: () => 0, mayTell: () => true }, patience);
    patience.for(0);
    const { complete, looked } = await looking;
    expect(complete).toBe(false);
    expect(looked).toBeLessThan(9000);
  });
});

describe("the state of a project's files", () => {
  const found = async (files: DirtyFiles): Promise<string | null> => {
    files.began(folder);
    files.ended(folder);
    await expect.poll(() => files.of(folder), { timeout: 20_000 }).not.toBeNull();
    return files.of(folder);
  };

  test("is the same for the same files, another one after an edit, and unknown while a command runs", async () => {
    writeFileSync(join(folder, "a"), "1");
    const files = new DirtyFiles();
    expect(files.of(folder)).toBeNull();
    const first = await found(files);
    expect(await found(files)).toBe(first);
    writeFileSync(join(folder, "a"), "22");
    expect(await found(files)).not.toBe(first);
    files.began(folder);
    expect(files.of(folder)).toBeNull();
    files.ended(folder);
    expect(files.of(folder)).toBeNull();
    expect(readFileSync(join(folder, "a"), "utf8")).toBe("22");
  });
});
