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
