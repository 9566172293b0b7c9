import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";

const POLICIES = join(import.meta.dirname, "../../policies");
const AGENTS = ["aider", "claude-code", "codex", "copilot", "cursor", "gemini", "opencode"];

/** What runs later, outside every world, or says what the agent may do; each stands there before, or is made. */
const SETTINGS = [
  ".claude/settings.json",
  ".claude/settings.local.json",
  ".mcp.json",
  ".codex/config.toml",
  ".cursor/mcp.json",
  ".cursor/hooks.json",
  ".gemini/settings.json",
  ".opencode/plugin/x.ts",
  "opencode.json",
  ".github/hooks/x.json",
  ".github/lsp.json",
  ".github/extensions/x/extension.mjs",
  ".github/plugin/plugin.json",
  ".vscode/tasks.json",
  ".idea/runConfigurations/x.xml",
  ".husky/pre-commit",
  ".githooks/pre-commit",
  ".pre-commit-config.yaml",
  ".envrc",
  ".git/hooks/pre-commit",
];

/** Their neighbours, which are anybody's. */
const FREE = [
  "src/x.ts",
  ".claudefoo/settings.json",
  "sub/.envrc",
  ".cursor2",
  ".github/ISSUE_TEMPLATE/bug.md",
  ".github/copilot-instructions.md",
  ".github/instructions/x.instructions.md",
  ".github/workflows/ci.yml",
  ".github/lsp.md",
  "AGENTS.md",
  "Makefile",
  ".claude/worktrees/x/y",
];

/** A script, so that no rule about the words of a command helps: the world alone is asked. */
const WRITE = `for path in "$@"; do mkdir -p "$(dirname "$path")" && echo written > "$path"; done 2>/dev/null; true\n`;

function asDefault(name: string): string {
  return readFileSync(join(POLICIES, `${name}.yaml`), "utf8").replace(`\nid: ${name}\n`, "\nid: default\n");
}

describe.each(actors())("as $kind", (actor) => {
  describe.each(AGENTS)("under %s", (name) => {
    let broker: TestBroker;
    const at = (path: string): string => join(broker.project, path);
    beforeAll(async () => {
      broker = await TestBroker.start(actor, { policies: { default: asDefault(name) } });
      broker.write(at("write.sh"), WRITE);
    });
    afterAll(() => broker.stop());

    test("no command writes a file that runs by itself or widens an agent's rights, where it is missing", async () => {
      await broker.run({ argv: ["sh", "write.sh", ...SETTINGS] });
      expect(SETTINGS.filter((path) => existsSync(at(path)))).toEqual([]);
    });

    test("nor where it is there, and it is read as before", async () => {
      for (const path of SETTINGS) broker.write(at(path), "before\n");
      // A git folder that a command made is sealed from the next world on.
      await broker.operator("POST", "/v1/world/restart", { all: true, force: true });
      await broker.run({ argv: ["sh", "write.sh", ...SETTINGS] });
      await broker.run({
        argv: ["sh", "-c", `rm -f ${SETTINGS.join(" ")}; mv .cursor .moved; mv .claude .away`],
      });
      expect(
        SETTINGS.filter((path) => !existsSync(at(path)) || readFileSync(at(path), "utf8") !== "before\n"),
      ).toEqual([]);
      expect((await broker.run({ argv: ["cat", ".vscode/tasks.json", ".envrc"] })).stdout).toBe(
        "before\nbefore\n",
      );
    });

    test("its twins are written on the host", async () => {
      await broker.run({ argv: ["sh", "write.sh", ...FREE] });
      expect(FREE.filter((path) => !existsSync(at(path)))).toEqual([]);
    });

    test("a push waits for a person, and a commit does not", async () => {
      expect(await broker.refused({ cmd: "git push origin main" })).toMatchObject({
        status: 403,
        code: "approval_required",
        rule: { pattern: "git push *" },
      });
      const made = await broker.run(
        "git init -q sub2 2>&1; cd sub2 && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git log --oneline",
      );
      expect(made.stdout).toMatch(/ x$/m);
    });
  });

  describe("under readonly", () => {
    let broker: TestBroker;
    beforeAll(async () => {
      broker = await TestBroker.start(actor, { policies: { default: asDefault("readonly") } });
      broker.write(join(broker.project, "write.sh"), WRITE);
    });
    afterAll(() => broker.stop());

    test("nothing in the project is written, by whatever program, and all of it can be read", async () => {
      const { stdout } = await broker.run({
        cmd: `P=sh; $P write.sh x sub/y; cp write.sh z 2>/dev/null; cat write.sh`,
      });
      expect(stdout).toBe(WRITE);
      expect(["x", "sub", "z"].filter((path) => existsSync(join(broker.project, path)))).toEqual([]);
    });

    test("its twin: a test that keeps to /tmp passes", async () => {
      const reply = await broker.run(
        "sort write.sh > /tmp/sorted && mkdir /tmp/t && cd /tmp/t && touch a && ls /tmp/t",
      );
      expect(reply).toMatchObject({ exit: 0, stdout: "a\n" });
    });
  });

  describe("under ci", () => {
    let broker: TestBroker;
    beforeAll(async () => {
      broker = await TestBroker.start(actor, { policies: { default: asDefault("ci") } });
    });
    afterAll(() => broker.stop());

    test("what one step makes the next one finds, and what asks or cannot be known is refused at once", async () => {
      await broker.run("mkdir -p dist && echo built > dist/x");
      expect((await broker.run("cat dist/x")).stdout).toBe("built\n");
      expect(await broker.refused({ cmd: '"$RUNNER" --all', approval_wait_ms: 60_000 })).toMatchObject({
        code: "policy_denied",
        rule: { list: "commands.opaque" },
      });
    });
  });
});
