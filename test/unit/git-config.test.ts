import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { treeSettings } from "../../broker/git/config.ts";

const base = mkdtempSync(join(tmpdir(), "substrate-config-"));
const file = join(base, "config");

afterAll(() => rmSync(base, { recursive: true }));

describe("git's config is read as git reads it:", () => {
  test.each([
    ["[core]\n\tworktree = ../x\n"],
    ["[CORE]worktree=../x"],
    ['[core]\nworktree = "a b" ; note\n'],
    ['[core] worktree = a"#;"b # note\n'],
    ["[core]\nworktree = one\\\n two\n[core]\nbare\n"],
    ["[core]\nworktree = one\n[other]\nworktree = two\n[core]\nWorkTree = three   \r\n"],
    ["[core]\r\nworktree = a\r\n[other]\r\nbare\r\n"],
    ["[core]\r\nworktree = one\\\r\n two\r\n"],
    ['[core]\r\nworktree = "a b"  ; note\r\n'],
    ["[core]\nbare\r\r\nworktree = a\n"],
    ["[core]\nworktree = a\\"],
    ["\uFEFF[core]\r\nworktree = a\r\n"],
    ['[other\r"x"]\nx = 1\n[core]\nworktree = a\n'],
    ['[core "sub"]\nworktree = ../x\n'],
    ['[core]\nworktree = a\\tb\\\\c\\"d\n'],
    ["; worktree = no\n[core]\n# worktree = no\nbare = true\n"],
    ['[core]\nworktree = ../x\nbroken = "no end\n'],
    ["[core]\nworktree = ../x\nbad = \\q\n"],
    ["worktree = ../x\n"],
    ["[core]\nworktree ../x\n"],
    ["[core\nworktree = ../x\n"],
  ])("%j", (text) => {
    writeFileSync(file, text);
    const git = spawnSync("git", ["config", "--file", file, "core.worktree"], { encoding: "utf8" });
    const expected = git.status === 0 ? git.stdout.replace(/\n$/, "") : undefined;
    expect(treeSettings(text)?.worktree).toBe(expected);
  });

  test.each(["[core]\n", "a=b\n", '[core] a = "\\\n', "#\n"])(
    "sixteen times as much of %j takes about sixteen times the work",
    (part) => {
      const least = (bytes: number): number => {
        const text = `[core]\n${part.repeat(Math.floor(bytes / part.length))}`;
        return Math.min(...Array.from({ length: 5 }, () => workOf(() => treeSettings(text))));
      };
      // What grows with the square would take 256 times as much; larger strings cost the collector some more.
      expect(least(1024 * 1024) / least(64 * 1024)).toBeLessThan(160);
    },
  );
});

/** Microseconds of processor time: a busy machine does not count. */
function workOf(run: () => void): number {
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return Math.max(user + system, 1);
}
