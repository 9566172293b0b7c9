import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { expect, test } from "vitest";
import { gitFoldersBelow } from "../../../../broker/git/paused.ts";

test("the git folders of worktrees and submodules are found, also of a submodule named as a folder of git's own", () => {
  const git = mkdtempSync(join(tmpdir(), "substrate-paused-"));
  try {
    const folders = ["worktrees/w", "modules/info", "modules/a/objects/00", "modules/a/modules/sequencer"];
    for (const folder of folders) mkdirSync(join(git, folder), { recursive: true });
    const found = gitFoldersBelow(git).map((path) => relative(git, path));
    expect(found).toEqual(
      expect.arrayContaining(["worktrees/w", "modules/info", "modules/a/modules/sequencer"]),
    );
    expect(found).not.toContain("modules/a/objects");
  } finally {
    rmSync(git, { recursive: true });
  }
});
