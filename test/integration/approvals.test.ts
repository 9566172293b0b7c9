import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ApprovalPreviewReply } from "../../schemas/generated/types.ts";
import { validateSpan } from "../../schemas/generated/validators.js";
import { actors } from "../support/users/users.ts";
import { Person } from "../support/broker/approvals.ts";
import { TestBroker } from "../support/broker/broker.ts";

const RULES = `  ask: ["touch *", "tee *", { pattern: "rm *", reason: "Things go away" }]
  isolated: ["tee *"]
  denied: ["touch never*"]
`;
const POLICY = `id: default
name: Asks
mode: enforce
commands:
${RULES}`;

const POLICIES = {
  default: POLICY,
  eager: `id: eager\nname: Eager\nselectable: true\nmode: enforce\napproval:\n  preview: auto\n`,
  silent: `id: silent\nname: Silent\nselectable: true\nmode: enforce\napproval:\n  interactive: false\n`,
  brief: `id: brief\nname: Brief\nselectable: true\nmode: enforce\napproval:\n  timeout_secs: 1\n`,
};

describe.each(actors())("approvals, as $kind", (actor) => {
  let broker: TestBroker;
  let person: Person;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: POLICIES });
    person = new Person(broker);
  });
  afterAll(() => broker.stop());

  const inProject = (name: string): string => join(broker.project, name);

  test("what asks is refused at once with the id of its question, which says who asks for what and why", async () => {
    const told = await person.told({ cmd: "rm some", agent_id: "asker", env: { COLOUR: "red" } });
    expect(told).toMatchObject({
      status: 403,
      code: "approval_required",
      policy_id: "default",
      rule: { list: "commands.ask", pattern: "rm *", fragment: "rm some", reason: "Things go away" },
    });
    expect(told.approval_id).toMatch(/^apr_/);
    expect(told.hint).toContain(`substrate approve ${told.approval_id} --once`);
    expect(await person.question(told.approval_id)).toMatchObject({
      kind: "command",
      agent_id: "asker",
      project: broker.project,
      cwd: broker.project,
      span_id: told.span_id,
      reason: "Things go away",
      subject: { cmd: "rm some", shell: "sh", env: ["COLOUR=red"], verdict: "allow" },
      offers: ["once", "session", "always", "deny"],
      waiting: 0,
    });
    const [asked] = person.events(told.approval_id);
    expect(validateSpan(asked), JSON.stringify(validateSpan.errors)).toBe(true);
    expect(asked).toMatchObject({
      parent_span: told.span_id,
      cmd: "rm some",
      approval: { kind: "command", event: "asked", by: null },
    });
  });

  test("variables are shown as they are: what a redaction leaves out could be where a command is led", async () => {
    const way = `'x.token=" ' 'url./evil.git.insteadOf=/good.git' 'y.z="'`;
    const told = await person.told({ cmd: "rm led", env: { GIT_CONFIG_PARAMETERS: way } });
    expect(await person.question(told.approval_id)).toMatchObject({
      subject: { env: [`GIT_CONFIG_PARAMETERS=${way}`] },
    });
    expect(JSON.stringify(person.events(told.approval_id))).not.toContain("evil.git");
  });

  test("input is shown as text, and what is not shown whole is approved once at most", async () => {
    const shown = async (input: Buffer): Promise<object> => {
      const told = await person.told({ cmd: "rm read", stdin_b64: input.toString("base64") });
      const { subject, offers } = await person.question(told.approval_id);
      return { bytes: subject.stdin_bytes, text: subject.stdin_text, offers };
    };
    const all = ["once", "session", "always", "deny"];
    expect(await shown(Buffer.from("import os"))).toEqual({ bytes: 9, text: "import os", offers: all });
    expect(await shown(Buffer.alloc(0))).toEqual({ bytes: 0, text: "", offers: all });
    const few = ["once", "deny"];
    expect(await shown(Buffer.from([0xff]))).toEqual({ bytes: 1, text: undefined, offers: few });
    const long = Buffer.alloc(4001, "a");
    expect(await shown(long)).toEqual({ bytes: 4001, text: "a".repeat(4000), offers: few });
  });

  test("asking again while the question waits is the same question", async () => {
    const first = await person.told({ cmd: "touch again" });
    const second = await person.told({ cmd: "touch again" });
    expect(second.approval_id).toBe(first.approval_id);
    expect(person.events(first.approval_id)).toHaveLength(1);
  });

  test("once is exactly one run", async () => {
    const id = await person.approve({ cmd: "touch once && echo ran" }, "once");
    const reply = await broker.run("touch once && echo ran");
    expect(reply).toMatchObject({
      stdout: "ran\n",
      decision: { verdict: "allow", rule: { list: "commands.ask", pattern: "touch *" } },
    });
    expect(await broker.span(reply.span_id)).toMatchObject({
      approval_id: id,
      event_type: "command_complete",
    });
    const again = await person.told({ cmd: "touch once && echo ran" });
    expect(again).toMatchObject({ status: 403, code: "approval_required" });
    expect(again.approval_id).not.toBe(id);
    expect(person.events(id).map(({ approval }) => approval?.event)).toEqual(["asked", "once"]);
    expect(person.events(id)[1]?.approval?.by).toBe("control.sock");
  });

  test("a call that waits runs when a person says yes", async () => {
    const call = person.told({ cmd: "touch waited && echo ran", approval_wait_ms: 20_000 });
    const { approval_id } = await person.waitedFor();
    expect(existsSync(inProject("waited"))).toBe(false);
    expect(await person.answer(approval_id, "once")).toEqual({ status: 200 });
    expect(await call).toMatchObject({ status: 200, stdout: "ran\n" });
    expect(existsSync(inProject("waited"))).toBe(true);
  });

  test("of two calls that wait, once lets one run, and the other waits for an answer of its own", async () => {
    const body = { cmd: "touch two && echo ran", approval_wait_ms: 20_000 };
    const calls = [person.told(body), person.told(body)];
    const first = await person.waitedFor();
    await person.answer(first.approval_id, "once");
    expect(await Promise.race(calls)).toMatchObject({ status: 200 });
    const second = await person.waitedFor();
    expect(second.approval_id).not.toBe(first.approval_id);
    await person.answer(second.approval_id, "deny");
    const ends = (await Promise.all(calls)).map(({ status, code }) => code ?? status);
    expect(new Set(ends)).toEqual(new Set([200, "approval_denied"]));
  });

  test("a denial ends the wait, and the same question is not put again for a while", async () => {
    const call = person.told({ cmd: "touch refused", approval_wait_ms: 20_000 });
    const { approval_id } = await person.waitedFor();
    await person.answer(approval_id, "deny");
    expect(await call).toMatchObject({ status: 403, code: "approval_denied", approval_id });
    const again = await person.told({ cmd: "touch refused" });
    expect(again).toMatchObject({ status: 403, code: "approval_denied", approval_id });
    expect(again.retry_after_ms).toBeGreaterThan(0);
    expect(existsSync(inProject("refused"))).toBe(false);
    expect(await person.told({ cmd: "touch another" })).toMatchObject({ code: "approval_required" });
  });

  test("a wait ends with its time, with its client and with its question", async () => {
    const timed = await person.told({ cmd: "touch slow", approval_wait_ms: 50 });
    expect(timed).toMatchObject({ status: 403, code: "approval_required" });
    const client = new AbortController();
    const left = person
      .told({ cmd: "touch left", approval_wait_ms: 60_000 }, client.signal)
      .catch(() => "gone");
    const { approval_id } = await person.waitedFor();
    client.abort();
    expect(await left).toBe("gone");
    await expect.poll(async () => (await person.question(approval_id)).waiting).toBe(0);
    const expired = await person.told({ cmd: "touch brief", profile: "brief", approval_wait_ms: 60_000 });
    expect(expired).toMatchObject({ status: 403, code: "approval_required" });
    expect(expired.message).toContain("Nobody answered within 1 s");
    const late = await person.answer(expired.approval_id, "once");
    expect(late).toMatchObject({ status: 404, code: "not_found" });
    expect(late.message).toContain("expired without an answer");
  });

  test("what asks and is isolated runs isolated once it is approved", async () => {
    const body = { cmd: "echo x | tee isolated" };
    expect((await person.told(body)).code).toBe("approval_required");
    const id = (await person.told(body)).approval_id;
    expect((await person.question(id)).subject.verdict).toBe("isolate");
    await person.answer(id, "once");
    const reply = await broker.run(body);
    expect(reply).toMatchObject({
      decision: { verdict: "isolate" },
      fs_diff: { writes: ["isolated"], held: true },
    });
    // The rule is the one that asked, and did not isolate.
    expect(reply.decision.rule?.list).toBe("commands.ask");
    expect(reply.hint).not.toContain("ran isolated");
    expect(existsSync(inProject("isolated"))).toBe(false);
  });

  test("a denial of the policy is asked nobody, and neither is anything where nobody may be asked", async () => {
    expect(await person.told({ cmd: "touch never-1" })).toMatchObject({ code: "policy_denied" });
    expect(await person.told({ cmd: "touch never-1", require_approval: true })).toMatchObject({
      code: "policy_denied",
    });
    expect(await person.told({ cmd: "touch x", profile: "silent", approval_wait_ms: 60_000 })).toMatchObject({
      code: "policy_denied",
      exit: 126,
    });
    expect(await person.told({ cmd: "true", profile: "silent", require_approval: true })).toMatchObject({
      code: "policy_denied",
    });
    expect(await person.told({ cmd: "true", profile: "silent" })).toMatchObject({ status: 200 });
  });

  test("a caller may want to be asked about what is allowed", async () => {
    const body = { cmd: "echo allowed", require_approval: true };
    const told = await person.told(body);
    expect(told).toMatchObject({ status: 403, code: "approval_required", rule: null });
    await person.answer(told.approval_id, "once");
    expect(await person.told(body)).toMatchObject({ status: 200, stdout: "allowed\n" });
    expect(await person.told({ cmd: "echo allowed" })).toMatchObject({ status: 200 });
  });

  test("a preview says what would change and changes nothing", async () => {
    broker.write(inProject("old"), "x");
    const cmd = "rm old; mkdir -p made; for n in 1 2 3; do : > made/$n; done; echo y >> kept; exit 3";
    broker.write(inProject("kept"), "x");
    const { approval_id } = await person.told({ cmd });
    const { status, document } = await broker.operator("POST", `/v1/approvals/${approval_id}/preview`);
    expect(status, JSON.stringify(document)).toBe(200);
    const { preview } = document as ApprovalPreviewReply;
    expect(preview).toMatchObject({
      state: "done",
      writes: 3,
      mods: 1,
      deletes: 1,
      dirs: 1,
      exit: 3,
      timed_out: false,
    });
    expect(preview.names).toEqual(["old", "kept", "made/1", "made/2", "made/3", "made"]);
    expect((await person.question(approval_id)).preview).toEqual(preview);
    expect(existsSync(inProject("made"))).toBe(false);
    expect(readFileSync(inProject("kept"), "utf8")).toBe("x");
    const events = person.events(approval_id);
    expect(events.map(({ approval }) => approval?.event)).toEqual(["asked", "previewed"]);
    expect(events[1]?.approval?.preview).toEqual(preview);
  });

  test("with preview: auto a person is asked with its outcome", async () => {
    const told = await person.told({ cmd: "touch a b c", profile: "eager" });
    expect((await person.question(told.approval_id)).preview).toMatchObject({ state: "done", writes: 3 });
    expect(existsSync(inProject("a"))).toBe(false);
  });
});
