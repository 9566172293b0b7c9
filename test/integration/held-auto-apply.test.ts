import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ChangesReply, ExecuteReply, SpansReply } from "../../schemas/generated/types.ts";
import { actors, runAs } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { changed, diffOf, isolated, isolating, treeOf } from "../support/held/changes.ts";

const POLICY = isolating('changes: { apply: agent, auto_apply: ["$PROJECT/node_modules/**"] }');

describe.each(actors())("changes that apply by themselves, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
  });
  afterAll(() => broker.stop());

  const INSTALL =
    "mkdir -p node_modules/x node_modules/.bin; echo 1 > node_modules/x/package.json; ln -sf ../x node_modules/.bin/x";

  test("are in the project when the reply comes, with what is autorun inside; a span says that the policy did it", async () => {
    const { fs_diff: diff, hint, span_id: span } = await isolated(broker, INSTALL);
    expect(diff).toMatchObject({
      held: false,
      autorun: expect.arrayContaining(["node_modules/x/package.json"]) as unknown,
    });
    expect(hint).toContain("applied to the project by changes.auto_apply");
    expect(readFileSync(join(broker.project, "node_modules/x/package.json"), "utf8")).toBe("1\n");
    expect((await broker.run("cat node_modules/x/package.json")).stdout).toBe("1\n");
    const child = broker
      .spans()
      .findLast((line) => line.parent_span === span && line.held_changes !== undefined);
    expect(child).toMatchObject({
      outcome: "ended",
      held_changes: { action: "apply", by: "policy", left: 0 },
    });
  });

  test("can be taken back, also by a later broker", async () => {
    const { span_id: span } = await isolated(
      broker,
      "echo 2 > node_modules/x/package.json; echo y > node_modules/y",
    );
    expect(readFileSync(join(broker.project, "node_modules/x/package.json"), "utf8")).toBe("2\n");
    await broker.kill("SIGKILL");
    broker = await broker.again();
    await changed(broker, "undo", span);
    expect(readFileSync(join(broker.project, "node_modules/x/package.json"), "utf8")).toBe("1\n");
    expect(existsSync(join(broker.project, "node_modules/y"))).toBe(false);
  });

  test("never bring a git folder of another name, nor what leads git there; files that only have git's names come along", async () => {
    const led = await isolated(
      broker,
      "git init -q --bare node_modules/gd; mkdir -p node_modules/m; echo 'gitdir: ../gd' > node_modules/m/.git",
    );
    expect(led.fs_diff?.held).toBe(true);
    expect(led.hint).toContain(
      "changes.auto_apply: Nothing was applied: only the operator can apply files that tools run later",
    );
    for (const path of ["gd", "m/.git"])
      expect(existsSync(join(broker.project, "node_modules", path))).toBe(false);
    const twin = await isolated(
      broker,
      "mkdir -p node_modules/h/hooks; echo x > node_modules/h/config; echo x > node_modules/h/hooks/a",
    );
    expect(twin.fs_diff?.held).toBe(false);
    expect(existsSync(join(broker.project, "node_modules/h/hooks/a"))).toBe(true);
  });

  test("leave a deletion held where the file was moved out of the policy's folder", async () => {
    broker.write(join(broker.project, "node_modules/moved/a"), "the only copy\n");
    broker.write(join(broker.project, "node_modules/removed"), "of no use\n");
    const { span_id: span } = await isolated(
      broker,
      "mv node_modules/moved vendored; rm node_modules/removed; echo 5 > node_modules/five",
    );
    expect(existsSync(join(broker.project, "node_modules/removed"))).toBe(false);
    expect(existsSync(join(broker.project, "node_modules/five"))).toBe(true);
    expect(existsSync(join(broker.project, "node_modules/moved/a"))).toBe(true);
    await changed(broker, "discard", span);
    expect(readFileSync(join(broker.project, "node_modules/moved/a"), "utf8")).toBe("the only copy\n");
  });

  test("leave what lies elsewhere held, and the reply says how much of both", async () => {
    const {
      fs_diff: diff,
      hint,
      span_id: span,
    } = await isolated(broker, "echo z > node_modules/z; echo n > notes.txt");
    expect(diff?.held).toBe(true);
    expect(hint).toContain("1 change was applied to the project by changes.auto_apply");
    expect(hint).toContain("The other changes are held");
    expect(hint).toContain(`'substrate apply ${span}' (POST /v1/apply/${span})`);
    expect([
      existsSync(join(broker.project, "node_modules/z")),
      existsSync(join(broker.project, "notes.txt")),
    ]).toEqual([true, false]);
    expect((await diffOf(broker, span)).changes.map(({ path }) => path)).toEqual(["notes.txt"]);
    const applied = await broker.call("POST", `/v1/apply/${span}`, {});
    expect((applied.document as ChangesReply).done).toEqual(["notes.txt"]);
  });

  test.each([
    [
      "a file that tools run by themselves changed beside them",
      "echo q > node_modules/q; echo all: > Makefile",
    ],
    ["the command was ended by its time", "echo q > node_modules/q; sleep 60"],
    ["a link takes the folder's place", "mv node_modules away; ln -s away node_modules"],
    ["the folder itself goes", "rm -r node_modules"],
  ])("are none when %s: all is held", async (_what, cmd) => {
    const before = treeOf(broker.project);
    const { fs_diff: diff, span_id: span } = await isolated(broker, cmd, { timeout_ms: 1500 });
    expect(diff?.held).toBe(true);
    expect(treeOf(broker.project)).toEqual(before);
    await changed(broker, "discard", span);
  });

  test("stay held when the project changed under the command, and the reply says which path", async () => {
    const path = join(broker.project, "node_modules/z");
    const run = isolated(broker, "sleep 1.5; echo theirs > node_modules/z");
    await new Promise((resolve) => setTimeout(resolve, 700));
    writeFileSync(path, "mine\n");
    const { fs_diff: diff, hint } = await run;
    expect(diff?.held).toBe(true);
    expect(hint).toContain("node_modules/z");
    expect(readFileSync(path, "utf8")).toBe("mine\n");
  });

  test("leave spans that the trace lists like every other", async () => {
    const { spans } = (await broker.operator("GET", "/v1/spans?limit=100")).document as SpansReply;
    expect(spans.filter(({ held_changes: event }) => event?.by === "policy").length).toBeGreaterThan(1);
    expect((await broker.cli(["trace", "verify"])).code).toBe(0);
  });
});

const SHIPPED = join(import.meta.dirname, "../../policies");

/** Shipped policies that apply an install's files by themselves. */
const AGENTS = readdirSync(SHIPPED)
  .filter(
    (name) => name.endsWith(".yaml") && /^extends: agent$/m.test(readFileSync(join(SHIPPED, name), "utf8")),
  )
  .map((name) => name.replace(".yaml", ""));

describe.each(actors())("an agent's 'npm ci', as $kind", (actor) => {
  let broker: TestBroker;
  const at = (path: string): string => join(broker.project, path);
  const onHost = async (...argv: string[]): Promise<void> => {
    const ran = await runAs(actor, argv, { cwd: broker.project });
    if (ran.code !== 0) throw new Error(`${argv.join(" ")} ended with ${ran.code}: ${ran.stderr}`);
  };

  const install = async (agent: string, more = ""): Promise<ExecuteReply> => {
    const call = { agent_id: agent, cwd: broker.project, cmd: `npm ci --offline --no-audit${more}` };
    const { status, document } = await broker.operator("POST", "/v1/execute", call);
    expect(status, JSON.stringify(document)).toBe(200);
    return document as ExecuteReply;
  };

  beforeAll(async () => {
    const config = AGENTS.map((id) => `  ${id}: { policy: ${id} }\n`).join("");
    broker = await TestBroker.start(actor, { config: `agents:\n${config}` });
    const packed = { name: "tool", version: "1.0.0", bin: { tool: "run.js" } };
    broker.write(at("tool/package.json"), JSON.stringify(packed));
    broker.write(at("tool/run.js"), "#!/usr/bin/env node\n");
    broker.write(at("packages/own/package.json"), JSON.stringify({ name: "own", version: "1.0.0" }));
    const project = { name: "p", workspaces: ["packages/*"], dependencies: { tool: "file:tool-1.0.0.tgz" } };
    broker.write(at("package.json"), JSON.stringify(project));
    await onHost("npm", "pack", "./tool");
    await onHost("npm", "install", "--offline", "--no-audit");
  });
  afterAll(() => broker.stop());

  test.each(AGENTS)(
    "is applied with its programs and its workspaces' links by the policy '%s'",
    async (agent) => {
      await onHost("rm", "-rf", "node_modules");
      const { exit, hint, fs_diff: diff } = await install(agent);
      expect(exit).toBe(0);
      expect(hint).toContain("applied to the project by changes.auto_apply");
      expect(diff?.held).toBe(false);
      const made = [".bin/tool", "own", "tool/package.json"].filter((path) =>
        existsSync(at(`node_modules/${path}`)),
      );
      expect(made).toEqual([".bin/tool", "own", "tool/package.json"]);
    },
  );

  test("stays held where a package links a folder that an agent reads to one that commands write", async () => {
    const { hint, fs_diff: diff } = await install(
      "claude-code",
      "; ln -s ../../free node_modules/tool/.claude",
    );
    expect(diff?.held).toBe(true);
    expect(hint).toContain("it is a link in a place whose files tools run later");
  });
});
