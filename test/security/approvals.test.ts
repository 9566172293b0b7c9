import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call } from "../../api/client.ts";
import type { ApprovalPreviewReply } from "../../schemas/generated/types.ts";
import { actors } from "../actors.ts";
import { Person } from "../approvals.ts";
import { ROOT_OVERLAY, TestBroker } from "../broker.ts";
import { installationFor } from "../installation.ts";
import { processesWith } from "../processes.ts";
import { runAs } from "../users.ts";

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
  other: "id: other\nname: Other\nselectable: true\nmode: enforce\n",
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
  const toRemove: string[] = [];
  afterAll(async () => {
    for (const folder of toRemove) rmSync(folder, { recursive: true, force: true });
    await broker.stop();
  });

  const inProject = (name: string): string => join(broker.project, name);
  const restart = (text: string): void => broker.write(join(broker.home, "policies/default.yaml"), text);

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
    await broker.run({ argv: ["sh", "-c", `printf x > '${file}'`] });
    expect(existsSync(file)).toBe(false);
    expect(await person.told({ cmd: "touch self" })).toMatchObject({
      code: "approval_required",
      approval_id: id,
    });
    expect(existsSync(inProject("self"))).toBe(false);
    expect(await person.answer(id, "once")).toEqual({ status: 200 });
    expect((await broker.run("touch self")).exit).toBe(0);
  });

  test("an answer holds for exactly what was asked, and for nothing beside it", async () => {
    broker.write(inProject("sub/kept"), "");
    const body = { cmd: "touch bound", env: { A: "1" }, stdin_b64: "eA==" };
    await person.approve(body, "session");
    const path = (await broker.run({ argv: ["sh", "-c", "printf %s $PATH"] })).stdout;
    const others: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
      "other words": { ...body, cmd: "touch bound-2" },
      "more white space": { ...body, cmd: "touch  bound" },
      "the same words without a shell": { env: body.env, stdin_b64: "eA==", argv: ["touch", "bound"] },
      "another shell": { ...body, shell: "bash" },
      "another folder": { ...body, cwd: inProject("sub") },
      "another value": { ...body, env: { A: "2" } },
      "one variable more": { ...body, env: { A: "1", B: "" } },
      "one variable less": { cmd: body.cmd, stdin_b64: "eA==" },
      "another PATH": { ...body, env: { A: "1", PATH: `${broker.project}/sub:${path}` } },
      "the usual PATH, but said": { ...body, env: { A: "1", PATH: path } },
      "other input": { ...body, stdin_b64: "eQ==" },
      "no input": { cmd: body.cmd, env: body.env },
      "another agent": { ...body, agent_id: "somebody" },
      "a narrowing profile": { ...body, profile: "other" },
      "processes that stay": { ...body, background: "keep" },
    };
    for (const [what, other] of Object.entries(others))
      expect(await person.told(other), what).toMatchObject({ status: 403, code: "approval_required" });
    expect(existsSync(inProject("bound"))).toBe(false);
    expect(await person.told({ ...body, timeout_ms: 5000 })).toMatchObject({ status: 200 });
    expect(existsSync(inProject("bound"))).toBe(true);
  });

  test.each(["session", "always"] as const)(
    "a script that was replaced after its approval for %s asks again",
    async (how) => {
      const names = ["./deploy.sh now", "sh deploy.sh", "sh link.sh"];
      const script = (word: string): void => {
        broker.write(inProject("deploy.sh"), `#!/bin/sh\n: touch ${how}\nprintf ${word}\n`);
      };
      script("good");
      await broker.run("chmod +x deploy.sh; ln -sf deploy.sh link.sh");
      for (const cmd of names) {
        script("good");
        await person.approve({ cmd }, how);
        expect(await person.told({ cmd })).toMatchObject({ status: 200, stdout: "good" });
        script("evil");
        expect(await person.told({ cmd }), cmd).toMatchObject({ code: "approval_required" });
        script("good");
        expect(await person.told({ cmd })).toMatchObject({ status: 200, stdout: "good" });
      }
      broker.write(inProject("evil.sh"), "printf evil");
      unlinkSync(inProject("link.sh"));
      symlinkSync("evil.sh", inProject("link.sh"));
      expect(await person.told({ cmd: "sh link.sh" })).toMatchObject({ code: "approval_required" });
      unlinkSync(inProject("link.sh"));
    },
  );

  test("a program that steps before the approved one in PATH asks again", async () => {
    broker.write(inProject("late/tool"), "#!/bin/sh\nprintf good");
    broker.write(inProject("early/other"), "");
    await broker.run("chmod +x late/tool");
    const body = { cmd: "tool x", env: { PATH: `${inProject("early")}:${inProject("late")}:/usr/bin:/bin` } };
    await person.approve(body, "session");
    expect(await person.told(body)).toMatchObject({ status: 200, stdout: "good" });
    broker.write(inProject("early/tool"), "#!/bin/sh\nprintf evil");
    expect(await person.told(body)).toMatchObject({ code: "approval_required" });
    unlinkSync(inProject("early/tool"));
    expect(await person.told(body)).toMatchObject({ status: 200, stdout: "good" });
  });

  test("a script that is replaced while its question waits does not run by the answer", async () => {
    broker.write(inProject("deploy.sh"), "printf one > ran");
    const waiting = person.told({ cmd: "sh deploy.sh", approval_wait_ms: 20_000 });
    const { approval_id: first } = await person.waitedFor();
    broker.write(inProject("deploy.sh"), "printf two > ran");
    await person.answer(first, "once");
    const { approval_id: second } = await person.waitedFor();
    expect(second).not.toBe(first);
    expect(existsSync(inProject("ran"))).toBe(false);
    await person.answer(second, "once");
    expect(await waiting).toMatchObject({ status: 200 });
    expect(readFileSync(inProject("ran"), "utf8")).toBe("two");
  });

  test("what cannot be known before it runs, or seen from the host, is approved for one run only", async () => {
    const commands = ["$TOOL x", "eval touch y", "PATH=.:$PATH touch z", "touch y; sh /tmp/made-inside.sh"];
    for (const cmd of commands) {
      const { approval_id: id } = await person.told({ cmd });
      const { offers, notes } = await person.question(id);
      expect(offers, cmd).toEqual(["once", "deny"]);
      expect(notes[0]).toContain("It can only be approved for one run");
      for (const more of ["session", "always"] as const)
        expect(await person.answer(id, more), cmd).toMatchObject({ status: 400, code: "invalid_request" });
    }
    const { approval_id: id } = await person.told({ cmd: "touch known" });
    expect((await person.question(id)).offers).toEqual(["once", "session", "always", "deny"]);
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
    restart(`${POLICY}  warn: ["true"]\n`);
    expect(await person.answer(id, "once")).toMatchObject({ status: 409, code: "policy_changed" });
    expect(await waiting).toMatchObject({ status: 409, code: "policy_changed" });
    expect(person.events(id).map(({ approval }) => approval?.event)).toEqual(["asked", "policy_changed"]);
    restart(POLICY);
    expect(existsSync(inProject("changed"))).toBe(false);
  });

  test("where approvals are switched off everything that asked is denied, whatever was approved before", async () => {
    await person.approve({ cmd: "touch off" }, "session");
    await person.approve({ cmd: "touch off" + " -a" }, "always");
    restart(`${POLICY}approval:\n  interactive: false\n`);
    for (const cmd of ["touch off", "touch off -a"])
      expect(await person.told({ cmd, approval_wait_ms: 5000 })).toMatchObject({
        code: "policy_denied",
        exit: 126,
      });
    restart(POLICY);
    expect(existsSync(inProject("off"))).toBe(false);
    expect(await person.told({ cmd: "touch off -a" })).toMatchObject({ status: 200 });
  });

  test("a denial of the policy wins over every answer", async () => {
    await person.approve({ cmd: "touch later" }, "always");
    expect((await broker.run("touch later")).exit).toBe(0);
    restart(POLICY.replace('"touch never*"', '"touch later"'));
    expect(await person.told({ cmd: "touch later" })).toMatchObject({ code: "policy_denied" });
    restart(POLICY);
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

  test("a preview runs nothing for effect: no file outside, nothing left, no process, and nothing for what is denied", async () => {
    // Not below /tmp, which a world has of its own.
    const outside = (
      await runAs(actor, ["mktemp", "-d", join(actor.home, "sb-outside-XXXXXX")])
    ).stdout.trim();
    toRemove.push(outside);
    restart(POLICY.replace('"$PROJECT/**"', `"$PROJECT/**", "${outside}/**"`));
    const cmd = `touch inside; touch '${outside}/new' || echo no; sleep 77.125 & echo done >> inside`;
    const { approval_id: id } = await person.told({ cmd });
    const { status, document } = await broker.operator("POST", `/v1/approvals/${id}/preview`);
    expect(status, JSON.stringify(document)).toBe(200);
    expect((document as ApprovalPreviewReply).preview).toMatchObject({
      state: "done",
      writes: 1,
      names: ["inside"],
    });
    expect(readdirSync(outside)).toEqual([]);
    expect(existsSync(inProject("inside"))).toBe(false);
    expect(processesWith("77.125")).toEqual([]);
    expect(await leftLayers()).toEqual([]);
    await person.answer(id, "once");
    await broker.run({ cmd });
    expect(readdirSync(outside)).toEqual(["new"]);
    expect(readFileSync(inProject("inside"), "utf8")).toBe("done\n");
    restart(POLICY);
    const denied = await person.told({ cmd: "touch never-1" });
    expect(denied).toMatchObject({ code: "policy_denied" });
    expect(denied.approval_id).toBeUndefined();
    expect(await broker.operator("POST", `/v1/approvals/${denied.span_id}/preview`)).toMatchObject({
      status: 404,
    });
  });

  test("a preview ends with its time", async () => {
    const { approval_id: id } = await person.told({ cmd: "touch before; sleep 60", timeout_ms: 300 });
    const trying = broker.operator("POST", `/v1/approvals/${id}/preview`);
    await expect.poll(() => readdirSync(layersFolder()), { interval: 10 }).toHaveLength(1);
    const { document } = await trying;
    expect((document as ApprovalPreviewReply).preview).toMatchObject({ timed_out: true, writes: 1 });
    expect(await leftLayers()).toEqual([]);
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
      expect(stdout, words.join(" ")).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e\u2028]/);
      expect(stdout).not.toMatch(/^\s*WAITS/m);
    }
  });

  function layersFolder(): string {
    const hash = createHash("sha256").update(broker.home).digest("hex").slice(0, 16);
    return actor.uid === 0 ? join(ROOT_OVERLAY, hash) : join(broker.home, "overlay");
  }

  /** The folders of overlays that exist; what was previewed is removed a moment after its answer. */
  async function leftLayers(): Promise<readonly string[]> {
    await expect.poll(() => readdirSync(layersFolder()), { timeout: 5000 }).toEqual([]);
    return readdirSync(layersFolder());
  }
});
