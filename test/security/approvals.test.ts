import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call } from "../../api/client/client.ts";
import { actors } from "../support/users/users.ts";
import { Person } from "../support/broker/approvals.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { installationFor } from "../support/broker/installation.ts";
import type { ErrorReply } from "../../schemas/generated/types.ts";

const POLICY = `id: default
name: Asks
mode: enforce
fs:
  write: ["$PROJECT/**"]
commands:
  ask: ["touch *", "./deploy.sh *", "tool *", "sh deploy.sh", "sh link.sh", "echo *"]
  denied: ["touch never*"]
  opaque: ask
`;
const POLICIES = {
  default: POLICY,
  brief: "id: brief\nname: Brief\nselectable: true\nmode: enforce\napproval:\n  timeout_secs: 1\n",
};
const CONFIG = "agents:\n  named: {}\n";

describe.each(actors())("who approves what, as $kind", (actor) => {
  let broker: TestBroker;
  let person: Person;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: POLICIES, config: CONFIG });
    person = new Person(broker);
  });
  afterAll(() => broker.stop());

  const inProject = (name: string): string => join(broker.project, name);
  const setPolicy = (text: string): void => broker.write(join(broker.home, "policies/default.yaml"), text);

  test("no agent can answer: not on agent.sock, not on its own socket, not from inside; the operator can", async () => {
    const { approval_id: id } = await person.told({ cmd: "touch self" });
    const paths = [
      ["GET", "/v1/approvals"],
      ["POST", `/v1/approvals/${id}`],
      ["POST", `/v1/approvals/${id}/preview`],
    ] as const;
    for (const socket of ["sock/agent.sock", "sock/agents/named.sock"]) {
      for (const [method, path] of paths) {
        const answer = await call(join(broker.home, socket), method, path, { decision: "once" });
        expect(answer, `${socket} ${method} ${path}`).toMatchObject({ status: 404 });
      }
    }
    const { node } = await installationFor(actor);
    const control = join(broker.home, "sock/control.sock");
    const script = `require("net").connect(process.argv[1]).on("connect",()=>console.log("in")).on("error",e=>console.log(e.code))`;
    const inside = await broker.run({ argv: [node, "-e", script, control] });
    expect(inside.stdout).toMatch(/^(ENOENT|EACCES|ENOTDIR)\n$/);
    const file = join(broker.home, "approvals.yaml");
    await broker.run({ argv: ["sh", "-c", 'printf x > "$1"', "sh", file] });
    expect(existsSync(file)).toBe(false);
    expect(await person.told({ cmd: "touch self" })).toMatchObject({
      code: "approval_required",
      approval_id: id,
    });
    expect(existsSync(inProject("self"))).toBe(false);
    expect(await person.answer(id, "once")).toEqual({ status: 200 });
    expect((await broker.run("touch self")).exit).toBe(0);
  });

  test("an answer counts once: the second one is told what the first was", async () => {
    const { approval_id: id } = await person.told({ cmd: "touch replayed" });
    expect(await person.answer(id, "once")).toEqual({ status: 200 });
    for (const decision of ["once", "always", "deny"] as const) {
      const again = await person.answer(id, decision);
      expect(again).toMatchObject({ status: 404, code: "not_found" });
      expect(again.message).toContain("was approved for one run");
    }
    expect((await broker.run("touch replayed")).exit).toBe(0);
    expect(await person.told({ cmd: "touch replayed" })).toMatchObject({ code: "approval_required" });
    const unknown = await person.answer("apr_0199f0a0-0000-7000-8000-000000000001", "once");
    expect(unknown).toMatchObject({ status: 404, code: "not_found" });
    expect(await person.answer(`apr_${"x".repeat(5000)}`, "once")).toMatchObject({ status: 404 });
  });

  test("a once that nobody uses in its time is over", async () => {
    const body = { cmd: "touch unused", profile: "brief" };
    const { approval_id: id } = await person.told(body);
    await person.answer(id, "once");
    await sleep(1100);
    expect(await person.told(body)).toMatchObject({ code: "approval_required" });
    expect(existsSync(inProject("unused"))).toBe(false);
  });

  test("32 calls at once and an answer for one run: one runs", async () => {
    await person.approve({ cmd: "echo ran >> counted" }, "once");
    const calls = Array.from({ length: 32 }, () => person.told({ cmd: "echo ran >> counted" }));
    const codes = (await Promise.all(calls)).map(({ status, code }) => code ?? status);
    expect(codes.filter((code) => code === 200)).toHaveLength(1);
    expect(codes.filter((code) => code === "approval_required")).toHaveLength(31);
    expect(readFileSync(inProject("counted"), "utf8")).toBe("ran\n");
  });

  test("a policy that changes ends what waits, and no answer to it counts", async () => {
    const waiting = person.told({ cmd: "touch changed", approval_wait_ms: 20_000 });
    const { approval_id: id } = await person.waitedFor();
    setPolicy(`${POLICY}  warn: ["true"]\n`);
    expect(await person.answer(id, "once")).toMatchObject({ status: 409, code: "policy_changed" });
    expect(await waiting).toMatchObject({ status: 409, code: "policy_changed" });
    expect(person.events(id).map(({ approval }) => approval?.event)).toEqual(["asked", "policy_changed"]);
    setPolicy(POLICY);
    expect(existsSync(inProject("changed"))).toBe(false);
  });

  test("where approvals are switched off everything that asked is denied, whatever was approved before", async () => {
    await person.approve({ cmd: "touch off" }, "session");
    await person.approve({ cmd: "touch off" + " -a" }, "always");
    setPolicy(`${POLICY}approval:\n  interactive: false\n`);
    for (const cmd of ["touch off", "touch off -a"])
      expect(await person.told({ cmd, approval_wait_ms: 5000 })).toMatchObject({
        code: "policy_denied",
        exit: 126,
      });
    setPolicy(POLICY);
    expect(existsSync(inProject("off"))).toBe(false);
    expect(await person.told({ cmd: "touch off -a" })).toMatchObject({ status: 200 });
  });

  test("a denial of the policy wins over every answer", async () => {
    await person.approve({ cmd: "touch later" }, "always");
    expect((await broker.run("touch later")).exit).toBe(0);
    setPolicy(POLICY.replace('"touch never*"', '"touch later"'));
    expect(await person.told({ cmd: "touch later" })).toMatchObject({ code: "policy_denied" });
    setPolicy(POLICY);
  });

  test("a flood drops its own oldest questions, and nobody else's", async () => {
    const quiet = await person.told({ cmd: "touch quiet", agent_id: "quiet" });
    const first = await person.told({ cmd: "touch flood-first", agent_id: "flood" });
    for (let n = 0; n < 20; n += 1) await person.told({ cmd: `touch flood-${n}`, agent_id: "flood" });
    const { approvals } = await person.list();
    expect(approvals.filter(({ agent_id }) => agent_id === "flood")).toHaveLength(16);
    expect((await person.answer(first.approval_id, "once")).message).toContain("was dropped");
    for (let n = 0; n < 140; n += 1)
      await person.told({ cmd: "touch flood", agent_id: `label-${n % 9}`, env: { N: `${n}` } });
    const after = (await person.list()).approvals;
    expect(after.length).toBeLessThanOrEqual(128);
    expect(after.some(({ approval_id }) => approval_id === quiet.approval_id)).toBe(true);
    expect(await person.answer(quiet.approval_id, "deny")).toEqual({ status: 200 });
  });

  test("names that callers make up drop no question of an agent with its own socket", async () => {
    const socket = join(broker.home, "sock/agents/named.sock");
    const body = { agent_id: "named", cwd: broker.project, cmd: "touch named" };
    const { document } = await call(socket, "POST", "/v1/execute", body);
    const { approval_id: id } = (document as ErrorReply).error;
    for (let n = 0; n < 140; n += 1) await person.told({ cmd: "touch flood", agent_id: `made-up-${n}` });
    const { approvals } = await person.list();
    expect(approvals.length).toBeLessThanOrEqual(128);
    expect(approvals.map(({ approval_id }) => approval_id)).toContain(id);
    expect(await person.answer(id, "deny")).toEqual({ status: 200 });
  });

  test("a credential in a command is neither recorded nor written to a file", async () => {
    const secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    const { approval_id: id } = await person.told({
      cmd: `echo ${secret}`,
      env: { MY_TOKEN: "s3cr3t-value" },
    });
    const { subject, offers } = await person.question(id);
    expect(subject.cmd).toBe(`echo ${secret}`);
    expect(JSON.stringify(subject.env)).not.toContain("s3cr3t-value");
    expect(offers).toEqual(["once", "session", "deny"]);
    await person.answer(id, "session");
    const trace = readFileSync(join(broker.home, "trace/trace.jsonl"), "utf8");
    expect(trace).not.toContain(secret);
    expect(trace).not.toContain("s3cr3t-value");
    for (const file of ["db/data.mdb", "log/broker.log"])
      expect(readFileSync(join(broker.home, file)).includes(secret), file).toBe(false);
  });

  test("what an agent wrote cannot move the cursor of whoever reads the list, or look like a line of its own", async () => {
    const cmd = "touch x \u001b[2J\u009b1A\u202egnp\nWAITS  substrate approve apr_x\u2028forged";
    await person.told({ cmd, agent_id: "forger", env: { "E\u001b[31m": "\u0007" } });
    for (const words of [["approvals"], ["approvals", "--json"]]) {
      const { stdout, code } = await broker.cli(words);
      expect(code).toBe(0);
      expect(stdout).toContain("forger");
      expect(stdout, words.join(" ")).not.toMatch(/(?!\n)\p{Cc}|[\u202e\u2028]/u);
      expect(stdout).not.toMatch(/^\s*WAITS/m);
    }
  });
});
