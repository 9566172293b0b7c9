import { existsSync, readFileSync, symlinkSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BELIEVED_MS } from "../../broker/policy/program-paths.ts";
import type { TraceReply } from "../../schemas/generated/types.ts";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";

const POLICY = `
id: default
name: x
mode: enforce
commands:
  denied: ["id *"]
`;

describe.each(actors())("what a command line names, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    broker.write(join(broker.project, "bin/readme"), "");
    symlinkSync("/usr/bin/id", join(broker.project, "bin/impostor"));
    symlinkSync("/usr/bin/env", join(broker.project, "bin/honest"));
  });
  afterAll(() => broker.stop());

  const path = (): Readonly<Record<string, string>> => ({ PATH: `${broker.project}/bin:/usr/bin:/bin` });

  test("a link on PATH, or one that is named, meets the rule about the program it leads to; another link does not", async () => {
    const calls = [
      { cmd: "impostor -u", env: path() },
      { cmd: "./bin/impostor -u" },
      { argv: [join(broker.project, "bin/impostor"), "-u"] },
    ];
    for (const call of calls)
      expect(await broker.refused(call)).toMatchObject({ code: "policy_denied", rule: { pattern: "id *" } });
    expect(await broker.run({ cmd: "honest true", env: path() })).toMatchObject({ exit: 0 });
  });

  test("a decision is not remembered for another program under the same name", async () => {
    const link = join(broker.project, "bin/changing");
    symlinkSync("/usr/bin/env", link);
    const call = { cmd: "changing true", env: path() };
    expect(await broker.run(call)).toMatchObject({ exit: 0 });
    unlinkSync(link);
    symlinkSync("/usr/bin/id", link);
    await sleep(BELIEVED_MS + 100);
    expect(await broker.refused(call)).toMatchObject({ code: "policy_denied" });
  });

  test("a write that its world would refuse is denied with file and line; through a link the world refuses it", async () => {
    expect(await broker.refused({ cmd: "echo x > /etc/substrate-test" })).toMatchObject({
      code: "policy_denied",
      exit: 126,
      rule: { list: "fs.write", fragment: "echo x > /etc/substrate-test", source: "default.yaml:2" },
    });
    symlinkSync("/etc", join(broker.project, "elsewhere"));
    expect((await broker.run("echo x > elsewhere/substrate-test")).exit).not.toBe(0);
    expect(existsSync("/etc/substrate-test")).toBe(false);
    expect(await broker.run("echo x > /tmp/own && cat /tmp/own")).toMatchObject({ exit: 0, stdout: "x\n" });
  });

  test("a path whose folder is a link into the project is the world's to judge, and can be written", async () => {
    const link = join(broker.folder, "link");
    symlinkSync(broker.project, link);
    const reply = await broker.run(`cp bin/readme ${link}/copied; true`);
    expect(reply.decision.verdict).toBe("allow");
    expect((await broker.run(`cp bin/readme ${link}/copied`)).decision).toMatchObject({
      verdict: "allow",
      rule: null,
    });
  });

  test("builtins that change the shell have spans of their own below the command's, without secrets", async () => {
    const reply = await broker.run(`cd bin && export TOKEN=ghp_${"a".repeat(36)}; cd ..; ls`);
    const { document } = await broker.operator("GET", `/v1/trace/${reply.span_id}`);
    const { span, children: below } = document as TraceReply;
    const children = below.filter(({ event_type }) => event_type !== "exec");
    expect(below.length).toBe(children.length + 1);
    expect(children.map(({ cmd }) => cmd)).toEqual([
      "cd bin",
      expect.stringMatching(/^export TOKEN=\[redacted:/),
      "cd ..",
    ]);
    for (const child of children)
      expect(child).toMatchObject({
        event_type: "builtin_command",
        component: "shell",
        parent_span: span.span_id,
        world_id: span.world_id,
        replayable: false,
      });
    expect(readFileSync(join(broker.home, "trace/trace.jsonl"), "utf8")).not.toContain("ghp_");
    expect((await broker.cli(["trace", "verify"])).code).toBe(0);
  });

  test.each([
    ["false && cd /", []],
    ["false && cd /; true", []],
    ["true || cd /; if false; then cd /; fi", []],
    ["cd bin && false && cd /", ["cd bin"]],
    ["cd nowhere && export A=1; true", ["cd nowhere"]],
    ["cd bin; exit 0; cd /", ["cd bin"]],
    ["cd bin; kill -9 $$; cd /", ["cd bin"]],
  ])("'%s' leaves spans of the builtins that ran, and of no other", async (command, ran) => {
    const { span_id: id } = await broker.run(command);
    const { document } = await broker.operator("GET", `/v1/trace/${id}`);
    const builtins = (document as TraceReply).children.filter(
      ({ event_type: type }) => type === "builtin_command",
    );
    expect(builtins.map(({ cmd }) => cmd)).toEqual(ran);
  });
});
