import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CheckReply } from "../../schemas/generated/types.ts";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";

const RULES = `
commands:
  denied:
    - pattern: "touch forbidden*"
      reason: this file is not wanted
  isolated: ["touch isolated*", "rm isolated*"]
  ask: ["touch asked*"]
  warn: ["touch warned*"]
`;

const ENFORCE = `id: default\nname: Test\nmode: enforce\n${RULES}`;
const OBSERVE = `id: default\nname: Test\nmode: observe\n${RULES}`;
const NARROW = `id: narrow\nname: Narrow\nmode: enforce\nselectable: true\nfs:\n  write: []\ncommands:\n  denied: ["id *"]\n`;

describe.each(actors())("a policy that enforces, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: ENFORCE, narrow: NARROW } });
  });
  afterAll(() => broker.stop());

  test("a denied command is 403 with 126, the policy and the rule, and its file is not there", async () => {
    const error = await broker.refused({ cmd: "echo before > before; touch forbidden.txt" });
    expect(error).toMatchObject({
      status: 403,
      code: "policy_denied",
      exit: 126,
      policy_id: "default",
      rule: {
        list: "commands.denied",
        pattern: "touch forbidden*",
        fragment: "touch forbidden.txt",
        reason: "this file is not wanted",
      },
    });
    expect(error.rule?.source).toMatch(/^default\.yaml:\d+$/);
    expect(readdirSync(broker.project)).not.toContain("forbidden.txt");
    expect(readdirSync(broker.project)).not.toContain("before");
    expect(await broker.span(error.span_id ?? "")).toMatchObject({
      event_type: "violation",
      outcome: "refused",
      exit: 126,
      decision: { verdict: "deny" },
    });
  });

  test("its twin, which no rule denies, runs", async () => {
    expect(await broker.run("touch allowed.txt")).toMatchObject({
      exit: 0,
      decision: { verdict: "allow", rule: null },
    });
    expect(readdirSync(broker.project)).toContain("allowed.txt");
  });

  test("an isolated command's changes are listed and held, and the project is as before", async () => {
    broker.write(join(broker.project, "isolated-old"), "old");
    const reply = await broker.run("touch isolated-new && echo changed >> isolated-old && rm isolated-old");
    expect(reply).toMatchObject({
      exit: 0,
      decision: { verdict: "isolate" },
      isolation: { overlay: "on" },
      fs_diff: { writes: ["isolated-new"], deletes: ["isolated-old"], held: true, truncated: false },
    });
    expect(reply.fs_diff?.tree_hash).toMatch(/^sha256:/);
    expect(readdirSync(broker.project)).toContain("isolated-old");
    expect(readdirSync(broker.project)).not.toContain("isolated-new");
    expect(await broker.run("ls isolated-new")).toMatchObject({ exit: 2 });
  });

  test("what asks is refused as long as nobody has approved it", async () => {
    expect(await broker.refused({ cmd: "touch asked" })).toMatchObject({
      status: 403,
      code: "approval_required",
      rule: { list: "commands.ask" },
    });
    expect(existsSync(join(broker.project, "asked"))).toBe(false);
  });

  test("a warned command runs and leaves a violation span below its own", async () => {
    const reply = await broker.run("touch warned");
    expect(existsSync(join(broker.project, "warned"))).toBe(true);
    const answer = await broker.operator("GET", `/v1/trace/${reply.span_id}`);
    expect(answer.document).toMatchObject({
      children: [
        {
          event_type: "violation",
          parent_span: reply.span_id,
          decision: { rule: { list: "commands.warn" } },
        },
        { event_type: "exec", parent_span: reply.span_id },
      ],
    });
  });

  test("a profile narrows: its denials and its scopes hold beside the assigned policy's", async () => {
    expect(await broker.refused({ cmd: "id -u", profile: "narrow" })).toMatchObject({
      code: "policy_denied",
      rule: { pattern: "id *" },
    });
    expect(await broker.refused({ cmd: "touch forbidden", profile: "narrow" })).toMatchObject({
      code: "policy_denied",
    });
    expect(await broker.refused({ cmd: "touch unwritable", profile: "narrow" })).toMatchObject({
      code: "policy_denied",
      policy_id: "narrow",
      rule: { list: "fs.write", pattern: "nothing", fragment: "touch unwritable", source: "narrow.yaml:6" },
    });
    const reply = await broker.run({ cmd: 'touch "$PWD/unwritable"', profile: "narrow" });
    expect(reply.exit).not.toBe(0);
    expect(existsSync(join(broker.project, "unwritable"))).toBe(false);
    expect(await broker.run("id -u")).toMatchObject({ exit: 0 });
  });

  test("a .substrate-profile file names the profile", async () => {
    broker.write(join(broker.project, "sub/.substrate-profile"), "narrow\n");
    const cwd = join(broker.project, "sub");
    expect(await broker.refused({ cmd: "id -u", cwd })).toMatchObject({
      code: "policy_denied",
      policy_id: "narrow",
      rule: { pattern: "id *" },
    });
    expect(await broker.run("id -u")).toMatchObject({ exit: 0 });
  });

  test("check gives the verdict and runs nothing", async () => {
    const body = { agent_id: "test", cwd: broker.project, cmd: "touch forbidden-by-check" };
    const answer = await broker.call("POST", "/v1/check", body);
    expect(answer).toMatchObject({
      status: 200,
      document: { policy_id: "default", decision: { verdict: "deny", mode: "enforce" } },
    });
    expect(readdirSync(broker.project)).not.toContain("forbidden-by-check");
  });
});

describe.each(actors().slice(0, 1))("a policy that changes, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: OBSERVE } });
  });
  afterAll(() => broker.stop());

  test("observe runs what enforce would stop, and records what it would have been", async () => {
    const reply = await broker.run("touch forbidden-but-observed");
    expect(reply).toMatchObject({ exit: 0, decision: { verdict: "would_deny", mode: "observe" } });
    expect(existsSync(join(broker.project, "forbidden-but-observed"))).toBe(true);
    expect(await broker.span(reply.span_id)).toMatchObject({
      decision: { verdict: "would_deny", rule: { pattern: "touch forbidden*" } },
    });
    expect(await broker.run("touch asked-but-observed")).toMatchObject({
      decision: { verdict: "would_ask" },
    });
    expect(await broker.run("touch isolated-too")).toMatchObject({
      decision: { verdict: "would_isolate" },
      isolation: { overlay: "off" },
    });
  });

  test("an edit holds for the next command; one that does not load changes nothing; mending it holds again", async () => {
    const file = join(broker.home, "policies/default.yaml");
    writeFileSync(file, ENFORCE);
    const denied = await broker.refused({ cmd: "touch forbidden" });
    expect(denied.code).toBe("policy_denied");
    writeFileSync(file, "id: default\nname: Broken\ncommands:\n  denyd: []\n");
    expect((await broker.refused({ cmd: "touch forbidden" })).code).toBe("policy_denied");
    const validated = await broker.cli(["policy", "validate"]);
    expect(validated.code).toBe(1);
    expect(validated.stdout).toMatch(/default\.yaml:4:3/);
    writeFileSync(file, OBSERVE);
    expect(await broker.run("touch forbidden")).toMatchObject({ decision: { verdict: "would_deny" } });
  });

  test("policy reload says what holds and what does not load, and the trace keeps each reading", async () => {
    const file = join(broker.home, "policies/default.yaml");
    writeFileSync(file, ENFORCE);
    const { policy_hash: hash } = (
      await broker.operator("POST", "/v1/check", { agent_id: "x", cmd: "true", cwd: broker.project })
    ).document as CheckReply;
    expect((await broker.cli(["policy", "reload"])).stdout).toContain(`default: ${hash} is in force\n`);
    writeFileSync(file, "id: default\nname: Broken\ncommands:\n  denyd: []\n");
    const broken = await broker.cli(["policy", "reload"]);
    expect(broken).toMatchObject({ code: 1 });
    expect(broken.stdout).toContain(`default: does not load; ${hash} stays\n  default.yaml:4:3`);
    writeFileSync(file, OBSERVE);
    const answer = await broker.operator("POST", "/v1/policy/reload");
    expect(answer).toMatchObject({
      status: 200,
      document: { policies: [{ name: "default", problems: [] }], settings: { problems: [] } },
    });
    const readings = broker.spans().filter(({ event_type: type }) => type === "policy_reload");
    // The watcher reads on its own account, and leaves spans too.
    expect(readings).toContainEqual(
      expect.objectContaining({
        policy_id: "default",
        policy_hash: null,
        outcome: "failed",
        message: expect.stringContaining("default.yaml:4:3"),
      }),
    );
    expect(readings.at(-1)).toMatchObject({
      policy_id: "default",
      policy_hash: expect.stringMatching(/^sha256:/),
      outcome: "ended",
    });
    expect((await broker.call("POST", "/v1/policy/reload")).status).toBe(404);
  });
});

describe.each(actors().slice(0, 1))("a broker without a usable policy, as $kind", (actor) => {
  test("allows nothing and says where the mistake is", async () => {
    const broker = await TestBroker.start(actor, {
      policies: { default: "id: default\nname: x\nmode: sometimes\n" },
    });
    try {
      const error = await broker.refused({ cmd: "touch file" });
      expect(error).toMatchObject({ status: 403, code: "policy_denied", exit: 126 });
      expect(error.message).toMatch(/default\.yaml:3/);
      expect(readdirSync(broker.project)).toEqual([]);
    } finally {
      await broker.stop();
    }
  });

  test("refuses with 503 what the host cannot isolate as required, before anything runs", async () => {
    const broker = await TestBroker.start(actor, {
      policies: { default: "id: default\nname: x\nworld:\n  require: [mount, pid, cgroup]\n" },
    });
    try {
      expect(await broker.refused({ cmd: "touch file" })).toMatchObject({
        status: 503,
        code: "isolation_unavailable",
      });
      expect(readdirSync(broker.project)).toEqual([]);
      writeFileSync(
        join(broker.home, "policies/default.yaml"),
        "id: default\nname: x\nworld:\n  require: [mount, pid, seccomp, no_new_privs, capabilities]\n",
      );
      expect(await broker.run("touch file")).toMatchObject({ exit: 0 });
    } finally {
      await broker.stop();
    }
  });
});
