import { createHash, randomBytes } from "node:crypto";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  validateExecuteReply,
  validateExecuteTextReply,
  validateSpan,
} from "../../schemas/generated/validators.js";
import { actors } from "../support/users/users.ts";
import { eventually, TestBroker } from "../support/broker/broker.ts";
import { processesWith } from "../support/processes/processes.ts";

describe.each(actors())("execute, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor);
  });
  afterAll(() => broker.stop());

  test("the reply has the shape of the contract and the span is on record", async () => {
    const answer = await broker.post({ cmd: "echo out; echo err >&2; exit 3" });
    expect(answer.status).toBe(200);
    expect(validateExecuteReply(answer.document), JSON.stringify(validateExecuteReply.errors)).toBe(true);
    const reply = await broker.run("echo out; echo err >&2; exit 3");
    expect(reply).toMatchObject({
      stdout: "out\n",
      stderr: "err\n",
      exit: 3,
      signal: null,
      timed_out: false,
      truncated: false,
    });
    const span = await broker.span(reply.span_id);
    expect(validateSpan(span), JSON.stringify(validateSpan.errors)).toBe(true);
    expect(span).toMatchObject({
      event_type: "command_complete",
      exit: 3,
      outcome: "ended",
      cmd: "echo out; echo err >&2; exit 3",
    });
  });

  test("argv runs without a shell, and nothing in it is expanded", async () => {
    expect(await broker.run({ argv: ["printf", "%s|", "$HOME", "a b", "*"] })).toMatchObject({
      stdout: "$HOME|a b|*|",
      exit: 0,
    });
  });

  test("a program that is not there is 127, one that cannot be executed 126", async () => {
    expect(await broker.run({ argv: ["no-such-program"] })).toMatchObject({ exit: 127 });
    broker.write(join(broker.project, "data"), "no program");
    expect(await broker.run({ argv: ["./data"] })).toMatchObject({ exit: 126 });
  });

  test("bash is used when it is asked for", async () => {
    expect(await broker.run({ cmd: "echo ${BASH_VERSION:+bash}", shell: "bash" })).toMatchObject({
      stdout: "bash\n",
    });
  });

  test("outputs that are one keep the order of what is written, and are told as standard output", async () => {
    const cmd = "for i in $(seq 200); do echo out; echo err >&2; done; exit 3";
    const ran = await broker.run({ cmd, outputs: "together" });
    expect(ran).toMatchObject({ exit: 3, stdout: "out\nerr\n".repeat(200), stderr: "", stderr_bytes: 0 });
    expect(await broker.span(ran.span_id)).toMatchObject({ given: { form: "sh", outputs: "together" } });
    expect((await broker.run({ cmd, outputs: "separate" })).stdout).toBe("out\n".repeat(200));
    expect(await broker.run({ argv: ["no-such-program"], outputs: "together" })).toMatchObject({
      ...{ exit: 127, stdout: "" },
      stderr: "substrate: no-such-program: command not found\n",
    });
  });

  test("standard input arrives whole, and without one there is an end of file", async () => {
    const input = randomBytes(300_000);
    const reply = await broker.run({ cmd: "cat", stdin_b64: input.toString("base64") });
    expect(reply.stdout_b64 === input.toString("base64")).toBe(true);
    expect(await broker.run("cat")).toMatchObject({ stdout: "", exit: 0 });
  });

  test("standard input is a pipe, as behind a shell's own, whatever its length and whoever reads it", async () => {
    const given = (text: string): string => Buffer.from(text).toString("base64");
    const few = await broker.run({ cmd: "test -p /dev/stdin && wc -c", stdin_b64: given("abc") });
    expect(few).toMatchObject({ exit: 0, stdout: "3\n" });
    expect(await broker.run({ cmd: "test -p /dev/stdin && cat", stdin_b64: "" })).toMatchObject({
      exit: 0,
      stdout: "",
    });
    // More than a pipe holds: read slowly, in part, and by nobody.
    const text = "0123456789abcdef".repeat(300_000);
    const many = given(text);
    const read = await broker.run({ cmd: "sleep 0.2; sha256sum", stdin_b64: many });
    expect(read.stdout).toBe(`${createHash("sha256").update(text).digest("hex")}  -\n`);
    expect(await broker.run({ cmd: "head -c 4; exec sleep 0.1", stdin_b64: many })).toMatchObject({
      exit: 0,
      stdout: "0123",
    });
    expect(await broker.run({ cmd: "exec <&-; sleep 0.1; echo on", stdin_b64: many })).toMatchObject({
      exit: 0,
      stdout: "on\n",
    });
    const both = [1, 2, 3, 4].map(() => broker.run({ cmd: "sleep 0.1; wc -c", stdin_b64: many }));
    for (const { stdout } of await Promise.all(both)) expect(stdout).toBe("4800000\n");
  });

  test("format text is what an agent reads, and nothing that is the same in every reply", async () => {
    const call = { cmd: "printf 'ä\\377'; echo err >&2; exit 3", format: "text" };
    const { status, document } = await broker.post(call);
    expect(status).toBe(200);
    expect(validateExecuteTextReply(document), JSON.stringify(document)).toBe(true);
    expect(document).toMatchObject({
      verdict: "allow",
      exit: 3,
      stdout: "ä\ufffd",
      stderr: "err\n",
      hint: null,
    });
    const full = await broker.post({ ...call, format: "full" });
    expect(full.document).toHaveProperty("stdout_b64");
    expect((await broker.refused({ cmd: "true", format: "yaml" })).path).toBe("format");
  });

  test("stderr's length and hash are of the bytes that are returned, also of what the broker adds", async () => {
    for (const body of [{ argv: ["/no/such/program"] }, { cmd: "echo late >&2; sleep 5", timeout_ms: 100 }]) {
      const reply = await broker.run(body);
      const bytes = Buffer.from(reply.stderr_b64, "base64");
      expect(reply.stderr_bytes).toBe(bytes.length);
      expect((await broker.span(reply.span_id)).stderr_sha256).toBe(
        createHash("sha256").update(bytes).digest("hex"),
      );
    }
  });

  test("a binary output comes back byte for byte", async () => {
    const reply = await broker.run({ cmd: "head -c 200000 /dev/urandom | tee copy.bin" });
    const copy = await broker.run("base64 -w0 copy.bin");
    expect(copy.stdout === reply.stdout_b64).toBe(true);
  });

  test("the environment is what the contract says, and nothing of the broker's", async () => {
    const { stdout } = await broker.run({ cmd: "env", env: { ADDED: "yes" } });
    const names = stdout.split("\n").map((line) => line.split("=")[0]);
    expect(stdout).toContain("ADDED=yes\n");
    expect(stdout).toContain("SUBSTRATE_AGENT_ID=test\n");
    expect(stdout).toMatch(/SUBSTRATE_SPAN_ID=spn_/);
    for (const name of ["PATH", "HOME", "USER", "LOGNAME", "SHELL"]) expect(names).toContain(name);
    for (const name of ["SUBSTRATE_HOME", "NODE_CHANNEL_FD", "NODE_OPTIONS"])
      expect(names).not.toContain(name);
  });

  test("who a command is cannot be changed by its env", async () => {
    expect(
      await broker.run({ cmd: "echo $SUBSTRATE_AGENT_ID", env: { SUBSTRATE_AGENT_ID: "other" } }),
    ).toMatchObject({ stdout: "test\n" });
  });

  test("300 MB of output are counted and hashed, and the head and tail are kept", async () => {
    const reply = await broker.run({
      cmd: "echo first; head -c 300000000 /dev/zero; echo last",
      max_output_bytes: 1000,
    });
    expect(reply).toMatchObject({ stdout_bytes: 300_000_011, truncated: true, exit: 0 });
    expect(reply.stdout.startsWith("first\n")).toBe(true);
    expect(reply.stdout.endsWith("last\n")).toBe(true);
    expect(reply.stdout).toHaveLength(1000);
    expect((await broker.span(reply.span_id)).stdout_sha256).toMatch(/^[0-9a-f]{64}$/);
  });

  test("200 commands at once all end as they should", async () => {
    const replies = await Promise.all(
      Array.from({ length: 200 }, (_unused, number) => broker.run(`echo ${number}; exit ${number % 100}`)),
    );
    replies.forEach((reply, number) =>
      expect(reply).toMatchObject({ stdout: `${number}\n`, exit: number % 100 }),
    );
    expect(new Set(replies.map((reply) => reply.world_id)).size).toBe(1);
  });

  test("a command that is ended by a signal says which", async () => {
    expect(await broker.run("kill -9 $$")).toMatchObject({ signal: "SIGKILL", exit: 137 });
  });

  test("a command that ignores SIGTERM is gone when its time is over", async () => {
    const marker = `stubborn-${randomBytes(6).toString("hex")}`;
    const reply = await broker.run({
      cmd: `trap '' TERM; : ${marker}; sleep 600 & wait; sleep 600`,
      timeout_ms: 1500,
    });
    expect(reply).toMatchObject({ timed_out: true, signal: "SIGKILL" });
    expect(processesWith(marker)).toEqual([]);
    expect((await broker.span(reply.span_id)).outcome).toBe("timed_out");
  });

  test("a command that ends politely on SIGTERM may finish its work", async () => {
    const reply = await broker.run({
      cmd: "trap 'echo tidy; exit 7' TERM; sleep 600 & wait",
      timeout_ms: 1500,
    });
    expect(reply).toMatchObject({ timed_out: true, exit: 7, stdout: "tidy\n" });
  });

  test("a daemon that a command leaves is gone when the reply is there", async () => {
    const marker = `daemon-${randomBytes(6).toString("hex")}`;
    const reply = await broker.run(
      `(setsid sh -c ': ${marker}; sleep 600' </dev/null >/dev/null 2>&1 &) ; (setsid sh -c 'setsid sh -c ": ${marker}; sleep 600" &' &); sleep 0.2; echo done`,
    );
    expect(reply).toMatchObject({ stdout: "done\n", exit: 0 });
    expect(processesWith(marker)).toEqual([]);
  });

  test("a daemon that holds the outputs does not hold up the reply", async () => {
    expect(await broker.run("sleep 600 & echo done")).toMatchObject({
      stdout: "done\n",
      timed_out: false,
      exit: 0,
    });
  });

  test("with background: keep, what a command leaves goes on in its world and is listed", async () => {
    const marker = `kept-${randomBytes(6).toString("hex")}`;
    const reply = await broker.run({
      cmd: `sh -c ': ${marker}; while :; do date > beat; sleep 0.1; done' & echo started`,
      background: "keep",
    });
    expect(reply).toMatchObject({ stdout: "started\n", exit: 0 });
    expect(processesWith(marker).length).toBeGreaterThan(0);
    expect(await eventually(() => existsSync(join(broker.project, "beat")), 5000)).toBe(true);
    const status = await broker.cli(["world", "status", "--json"]);
    expect(status.stdout).toContain(marker);
    await broker.run(
      `for p in /proc/[0-9]*; do grep -qs ${marker} $p/cmdline && test \${p#/proc/} != $$ && kill -9 \${p#/proc/}; done; true`,
    );
    expect(await eventually(() => processesWith(marker).length === 0, 5000)).toBe(true);
  });

  test("a command that closes its outputs early is waited for", async () => {
    expect(await broker.run("exec >&- 2>&-; sleep 0.3; exit 5")).toMatchObject({ exit: 5, stdout: "" });
  });

  test("a client that goes away ends its command", async () => {
    const marker = `left-${randomBytes(6).toString("hex")}`;
    const leaving = new AbortController();
    const answer = broker.post({ cmd: `: ${marker}; sleep 600` }, leaving.signal).catch(() => "left");
    expect(await eventually(() => processesWith(marker).length > 0, 5000)).toBe(true);
    leaving.abort();
    expect(await answer).toBe("left");
    expect(await eventually(() => processesWith(marker).length === 0, 2000)).toBe(true);
  });

  test("commands of one agent in one project share a world; another agent has another", async () => {
    const [first, second, other] = [
      await broker.run("true"),
      await broker.run("true"),
      await broker.run({ cmd: "true", agent_id: "other" }),
    ];
    expect(second.world_id).toBe(first.world_id);
    expect(other.world_id).not.toBe(first.world_id);
    expect(other.session_id).not.toBe(first.session_id);
  });

  test("a session belongs to its agent and its project", async () => {
    const { session_id: session } = await broker.run("true");
    expect(await broker.run({ cmd: "true", session_id: session })).toMatchObject({ session_id: session });
    expect(await broker.refused({ cmd: "true", session_id: session, agent_id: "thief" })).toMatchObject({
      status: 404,
      code: "not_found",
    });
    mkdirSync(join(broker.folder, "elsewhere"), { recursive: true });
    broker.write(join(broker.folder, "elsewhere/file"), "");
    expect(
      await broker.refused({ cmd: "true", session_id: session, cwd: join(broker.folder, "elsewhere") }),
    ).toMatchObject({ status: 404 });
  });

  test("expect_policy binds a run to the policy that was looked at", async () => {
    const { policy_hash: hash } = await broker.run("true");
    expect(await broker.run({ cmd: "true", expect_policy: hash })).toMatchObject({ exit: 0 });
    expect(await broker.refused({ cmd: "true", expect_policy: `sha256:${"0".repeat(64)}` })).toMatchObject({
      status: 409,
      code: "policy_changed",
    });
  });

  test("a command that begins while another one's daemons are ended is not ended with them", async () => {
    const daemons = "(setsid sleep 300 < /dev/null > /dev/null 2>&1 &); true";
    for (let round = 0; round < 25; round += 1) {
      await Promise.all([broker.run(daemons), broker.run(daemons)]);
      const after = await Promise.all([1, 2, 3].map(() => broker.run("echo alive")));
      expect(after.map(({ stdout, exit }) => [stdout, exit])).toEqual(after.map(() => ["alive\n", 0]));
    }
  });

  test("a world that its own command destroys does not take the broker along", async () => {
    await broker.post({ cmd: "kill -9 -1" });
    expect(await broker.run("echo alive")).toMatchObject({ stdout: "alive\n" });
  });
});
