import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { hostGit } from "../support/git/git.ts";

/** Files that a tool runs by itself later, one for each that is known (world/overlay/autorun.ts). */
const RUN_LATER = [
  ".bashrc",
  ".claude/settings.json",
  ".codex/config.toml",
  ".cursor/mcp.json",
  ".devcontainer/devcontainer.json",
  ".envrc",
  ".gitattributes",
  ".github/extensions/x/extension.mjs",
  ".github/lsp.json",
  ".github/workflows/ci.yml",
  ".gitmodules",
  ".husky/pre-commit",
  ".idea/workspace.xml",
  ".mcp.json",
  ".npmrc",
  ".pre-commit-config.yaml",
  ".vscode/tasks.json",
  "Makefile",
  "build.rs",
  "conftest.py",
  "node_modules/.bin/tool",
  "package.json",
  "setup.py",
  "sub/.git/config",
  "sub/.git/hooks/pre-commit",
  "sub/deep/.envrc",
] as const;

/** Names that only look like those. */
const PLAIN = [
  ".bashrc.md",
  ".envrc-example",
  ".vscode-notes",
  "Makefile.txt",
  "my-package.json",
  "src/gitconfig",
] as const;

/** What makes git on the host run a program: written by no command, and at most held (broker/policy/files/default-denials.ts). */
const DENIED = [".git/config", ".git/hooks/pre-commit", ".git/commondir", ".git/config.worktree"] as const;

function writing(names: readonly string[]): string {
  return names.map((name) => `mkdir -p ${dirname(name)}; echo evil > ${name}`).join("; ");
}

describe.each(actors())("files that run later, as $kind", (actor) => {
  test("written by an isolated command are listed apart and held; plain ones are listed as plain", async () => {
    const policy = "id: default\nname: x\nmode: enforce\ncommands:\n  isolated: ['touch *']\n";
    const broker = await TestBroker.start(actor, { policies: { default: policy } });
    try {
      const ran = await broker.run(`touch held; ${writing([...RUN_LATER, ...PLAIN])}`);
      expect(ran.fs_diff?.autorun.toSorted()).toEqual([...RUN_LATER].sort());
      expect(ran.fs_diff?.writes).toEqual(expect.arrayContaining([...PLAIN]));
      for (const name of RUN_LATER) expect(existsSync(join(broker.project, name))).toBe(false);
    } finally {
      await broker.stop();
    }
  });

  test("by git on the host cannot be made, by plain or isolated commands, where the repository has none; commits go on", async () => {
    const policy = "id: default\nname: x\nmode: enforce\ncommands:\n  isolated: ['touch *']\n";
    const broker = await TestBroker.start(actor, { policies: { default: policy } });
    try {
      hostGit(actor, broker.project, "init", "-q");
      const config = join(broker.project, ".git/config");
      const before = readFileSync(config, "utf8");
      for (const cmd of [
        writing(DENIED),
        `rm -rf .git/hooks; ${writing(DENIED)}; sleep 0.1`,
        `touch held; ${writing(DENIED)}`,
      ])
        await broker.run(`${cmd}; true`);
      expect(readFileSync(config, "utf8")).toBe(before);
      for (const name of DENIED.slice(1)) expect(existsSync(join(broker.project, name)), name).toBe(false);
      expect(
        await broker.run("echo x > f && git add f && git -c user.name=a -c user.email=b commit -qm x"),
      ).toMatchObject({
        exit: 0,
      });
      expect(hostGit(actor, broker.project, "log", "--format=%s")).toBe("x");
    } finally {
      await broker.stop();
    }
  });
});
