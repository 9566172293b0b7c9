import { chownSync, copyFileSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Span, SpansReply } from "../../schemas/generated/types.ts";
import { actors } from "../support/users/users.ts";
import { eventually, TestBroker } from "../support/broker/broker.ts";

const RECORDED = join(import.meta.dirname, "recorded/trace.jsonl");
const LINES = readFileSync(RECORDED, "utf8")
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line) as Span & { readonly hash: string });

/** Recorded in November 2026, version 0.1.0; what the person and the agent `other` did then. */
const COMMANDS = [
  "echo one > a; cat a",
  "sudo id",
  "touch held1 held2",
  "cd /; export X=1; exit 3",
  "curl -sS https://collector.example/ -m 2; true",
] as const;

describe.each(actors().slice(-1))("a trace that an earlier version recorded, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor);
    await broker.kill("SIGKILL");
    for (const name of ["db", "trace"]) rmSync(join(broker.home, name), { recursive: true });
    mkdirSync(join(broker.home, "trace"), { mode: 0o700 });
    copyFileSync(RECORDED, join(broker.home, "trace/trace.jsonl"));
    for (const name of ["trace", "trace/trace.jsonl"])
      chownSync(join(broker.home, name), actor.uid, actor.gid);
    broker = await broker.again();
  });
  afterAll(() => broker.stop());

  test("is listed, with its agents and verdicts, and goes on with today's lines", async () => {
    await broker.run("true");
    await eventually(async () => (await listed()).length > COMMANDS.length, 20_000);
    const commands = (await listed()).map(({ cmd }) => cmd);
    for (const cmd of COMMANDS) expect(commands).toContain(cmd);
    const denied = (await listed()).find(({ cmd }) => cmd === "sudo id");
    expect(denied).toMatchObject({
      event_type: "violation",
      decision: { rule: { pattern: "sudo *", source: "default.yaml:6" } },
    });
  });

  test("holds when it is verified, from its first line to today's last", async () => {
    const { code, stdout } = await broker.cli(["trace", "verify", "--head", LINES.at(-1)?.hash ?? ""]);
    expect([code, stdout]).toEqual([0, expect.stringContaining("The trace is intact")]);
  });

  test("shows each of its spans with what happened below it", async () => {
    const span = LINES.find(({ cmd }) => cmd === "touch held1 held2")?.span_id ?? "";
    const tree = await broker.cli(["trace", span, "--tree"]);
    expect([tree.code, tree.stdout]).toEqual([0, expect.stringContaining("touch held1 held2")]);
    const gone = await broker.operator("GET", `/v1/diff/${span}`);
    // The layers are not there any more, and the answer says so instead of failing.
    expect(gone.status).toBe(404);
    for (const { span_id: id } of LINES) expect((await broker.span(id)).span_id).toBe(id);
  });

  async function listed(): Promise<SpansReply["spans"]> {
    const answer = await broker.operator("GET", "/v1/spans?limit=100");
    return (answer.document as SpansReply).spans;
  }
});
