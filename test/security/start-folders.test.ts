/** A session that began below the project's folder: its agent reads settings there, so they are kept there as at the top. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CheckReply } from "../../schemas/generated/types.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { hostGit } from "../support/git/git.ts";
import { actors } from "../support/users/users.ts";

const POLICY = readFileSync(join(import.meta.dirname, "../../policies/claude-code.yaml"), "utf8").replace(
  "\nid: claude-code\n",
  "\nid: default\n",
);

const SETTINGS = [
  ".claude/settings.local.json",
  ".claude/hooks/x",
  ".mcp.json",
  ".envrc",
  ".gemini/settings.json",
];

const START = "web/app";

/** Also in the folders between, which agents read on their way up. */
const KEPT = ["", "web/", "web/app/"].flatMap((folder) => SETTINGS.map((name) => `${folder}${name}`));

const FREE = [
  "web/app/src/.envrc",
  "other/.claude/settings.local.json",
  "web/app/.claude/worktrees/x",
  "web/app/x",
];

const WRITE = `for path in "$@"; do mkdir -p "$(dirname "$path")" && echo written > "$path"; done; true\n`;

describe.each(actors())("settings where a session began, as $kind", (actor) => {
  let broker: TestBroker;
  const at = (path: string): string => join(broker.project, path);
  const session = { session_key: "one" };
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    hostGit(actor, broker.project, "init", "-q");
    broker.write(at("write.sh"), WRITE);
    broker.write(at("web/.mcp.json"), "a person's\n");
    broker.write(at(`${START}/x`), "");
    hostGit(actor, broker.project, "init", "-q", "inner");
  });
  afterAll(() => broker.stop());

  const write = (paths: readonly string[], cwd = broker.project): ReturnType<TestBroker["run"]> =>
    broker.run({ argv: ["sh", at("write.sh"), ...paths.map(at)], cwd, ...session });

  test("are anybody's before a session begins there", async () => {
    await broker.run({ argv: ["sh", "write.sh", "early/.envrc"] });
    expect(existsSync(at("early/.envrc"))).toBe(true);
  });

  test("are written by no command of any folder, and the reply says why; names beside them are", async () => {
    const begun = { agent_id: "test", cwd: at(START), event: "session_start", ...session };
    expect((await broker.call("POST", "/v1/events", begun)).status).toBe(200);
    for (const cwd of [broker.project, at(START)]) {
      const ran = await write([...KEPT, ...FREE], cwd);
      expect(KEPT.filter((path) => existsSync(at(path)))).toEqual(["web/.mcp.json"]);
      expect(JSON.stringify(ran)).toContain("where a session of an agent began");
    }
    expect(readFileSync(at("web/.mcp.json"), "utf8")).toBe("a person's\n");
    for (const path of FREE) expect(readFileSync(at(path), "utf8")).toBe("written\n");
  });

  test("are written by no file tool of the agent, and by an isolated command at most held", async () => {
    const files = [{ path: `${START}/.claude/settings.json`, access: "write" }];
    const asked = { agent_id: "test", cwd: broker.project, files };
    const { document } = await broker.call("POST", "/v1/check", asked);
    expect((document as CheckReply).decision.verdict).toBe("deny");
    const path = at(`${START}/.envrc`);
    const held = await broker.run({ cmd: `npm install --version; echo held > '${path}'`, ...session });
    expect(held.decision.verdict).toBe("isolate");
    expect(held.fs_diff?.autorun).toEqual([`${START}/.envrc`]);
    expect(existsSync(path)).toBe(false);
  });

  test("are kept where the first sign of a session is a file tool", async () => {
    const files = [{ path: ".mcp.json", access: "write" }];
    const asked = { agent_id: "test", cwd: at("first"), session_key: "three", files };
    broker.write(at("first/x"), "");
    const { document } = await broker.call("POST", "/v1/check", asked);
    expect((document as CheckReply).decision.verdict).toBe("deny");
  });

  test("are kept from the project around a repository in which the session began", async () => {
    const begun = { agent_id: "test", cwd: at("inner"), event: "session_start", session_key: "two" };
    expect((await broker.call("POST", "/v1/events", begun)).status).toBe(200);
    await write(["inner/.envrc", "inner/x"]);
    expect(existsSync(at("inner/.envrc"))).toBe(false);
    expect(existsSync(at("inner/x"))).toBe(true);
  });

  test("are written by no other agent either", async () => {
    await broker.run({ argv: ["sh", "write.sh", "web/.envrc"], agent_id: "other" });
    expect(existsSync(at("web/.envrc"))).toBe(false);
  });
});

describe.each(actors())("what agents load from any folder of a project, as $kind", (actor) => {
  let broker: TestBroker;
  const at = (path: string): string => join(broker.project, path);
  const SKILL = ".claude/skills/e/SKILL.md";
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    hostGit(actor, broker.project, "init", "-q");
    broker.write(at(`own/${SKILL}`), "a person's\n");
  });
  afterAll(() => broker.stop());

  test.each([
    ["made with its folders", `mkdir -p sub/.claude/skills/e; echo x > sub/${SKILL}`],
    ["made deep in a package", `mkdir -p node_modules/m/.claude/skills/e; echo x > node_modules/m/${SKILL}`],
    ["moved there", "mkdir -p free/skills/e sub; echo x > free/skills/e/SKILL.md; mv free sub/.claude"],
    [
      "moved there with what is around it",
      `mkdir -p out/.claude; mkdir -p a/skills/e; echo x > a/skills/e/SKILL.md; mv a out/.claude/skills; mv out sub`,
    ],
    [
      "linked there",
      "mkdir -p free/skills/e sub; echo x > free/skills/e/SKILL.md; ln -s ../free sub/.claude",
    ],
  ])("is written by no command, %s, and the reply says so", async (_how, cmd) => {
    const ran = await broker.run(`${cmd}; true`);
    for (const folder of ["sub", "node_modules/m"]) expect(existsSync(at(`${folder}/${SKILL}`))).toBe(false);
    expect(ran.notices.map(({ message }) => message).join("\n")).toMatch(/\.claude/);
    await broker.run("rm -rf sub free out a node_modules; true");
  });

  test.each([
    ["linked", "mkdir -p .agents/skills; ln -s ../../free .agents/skills/s"],
    ["moved there as a link", "mkdir -p .agents/skills; ln -s ../../free l; mv l .agents/skills/s"],
    [
      "moved there with its folders",
      "mkdir -p out/skills; ln -s ../../free out/skills/s; rm -rf .agents; mv out .agents",
    ],
  ])("is no folder that commands write, %s below a name that a row leaves open", async (_how, cmd) => {
    await broker.run(`mkdir -p free/agents; echo x > free/agents/openai.yaml; ${cmd}; true`);
    expect(existsSync(at(".agents/skills/s/agents/openai.yaml"))).toBe(false);
    const { exit } = await broker.run(
      "mkdir -p .agents/skills/t && ln -s ../SKILL.md .agents/skills/t/SKILL.md",
    );
    expect(exit).toBe(0);
    await broker.run("rm -rf .agents out free; true");
  });

  test("stays as a person made it, and the files beside it are anybody's", async () => {
    await broker.run(`echo x > own/${SKILL}; rm -rf own/.claude/skills; true`);
    expect(readFileSync(at(`own/${SKILL}`), "utf8")).toBe("a person's\n");
    await broker.run(
      "mkdir -p own/.claude/worktrees own/skills && echo x | tee own/.claude/worktrees/x own/skills/y",
    );
    expect([".claude/worktrees/x", "skills/y"].filter((path) => !existsSync(at(`own/${path}`)))).toEqual([]);
  });

  test.each([`sub/${SKILL}`, ".agents/skills/s/agents/openai.yaml", ".claude/scheduled_tasks.json"])(
    "is written by no file tool, and by an isolated command at most held: %s",
    async (path) => {
      const asked = { agent_id: "test", cwd: broker.project, files: [{ path, access: "write" }] };
      const { document } = await broker.call("POST", "/v1/check", asked);
      expect((document as CheckReply).decision.verdict).toBe("deny");
      const held = await broker.run(
        `npm install --version; mkdir -p "$(dirname ${path})"; echo held > ${path}`,
      );
      expect(held.fs_diff?.autorun).toEqual([path]);
      expect(existsSync(at(path))).toBe(false);
    },
  );

  test("leaves prose of skills that several agents share to commands", async () => {
    await broker.run("mkdir -p .agents/skills/s && echo x > .agents/skills/s/SKILL.md");
    expect(readFileSync(at(".agents/skills/s/SKILL.md"), "utf8")).toBe("x\n");
  });
});

describe.each(actors().slice(0, 1))("where sessions began, as $kind", (actor) => {
  test("is known to the next broker, and a session without the event begins with its first command", async () => {
    const broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    let running = broker;
    try {
      hostGit(actor, broker.project, "init", "-q");
      broker.write(join(broker.project, "web/x"), "");
      const cwd = join(broker.project, "web");
      const first = await broker.run({ cmd: "echo x > .envrc; true", cwd, session_key: "one" });
      expect(first.notices).toMatchObject([
        { kind: "quarantined", message: expect.stringContaining("fs.deny_write") },
      ]);
      await broker.kill("SIGTERM");
      running = await broker.again();
      await running.run({ cmd: "echo x > web/.envrc; true" });
      expect(existsSync(join(broker.project, "web/.envrc"))).toBe(false);
    } finally {
      await running.stop();
    }
  });
});
