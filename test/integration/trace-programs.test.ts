/** `substrate trace --tree` and the calls behind it, on a build of twenty thousand programs that a test tells the trace of. */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ProgramRecorder } from "../../broker/programs/program-recorder.ts";
import { Trace } from "../../broker/spans/trace.ts";
import type { Span, SpansReply, TraceReply, TraceTreeReply } from "../../schemas/generated/types.ts";
import type { ProgramEvent } from "../../world/model/programs.ts";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { recordSkip } from "../support/run/skips.ts";
import { ended, refused, started } from "../support/trace/traces.ts";

const COMPILED = 20_000;

/** Who runs the tests: it writes into the broker's trace while there is no broker. */
const [actor] = actors();

/** make, which starts a shell for each file, which starts a compiler; one file cannot be compiled. */
function build(): readonly ProgramEvent[] {
  const events: ProgramEvent[] = [started(1, 0, ["make", "-j2"]), refused(1, ["curl", "\u001b[2J\n\u202e"])];
  for (let file = 0; file < COMPILED / 2; file += 1) {
    const number = 2 + 2 * file;
    const exit = file === 4000 ? 1 : 0;
    events.push(
      started(number, 1, ["sh", "-c", `cc -c ${file}.c`]),
      started(number + 1, number, ["cc", "-c", `${file}.c`]),
    );
    events.push(ended(number + 1, { code: exit }), ended(number, { code: exit }));
  }
  return [...events, ended(1, { code: 2 })];
}

if (actor === undefined) recordSkip({ what: "the tree of a build", why: "there is nobody to run it as" });

describe.runIf(actor !== undefined)("the tree of a build", () => {
  let broker: TestBroker;
  let command: Span;

  beforeAll(async () => {
    if (actor === undefined) return;
    const first = await TestBroker.start(actor, {});
    const { span_id: id } = await first.run({ agent_id: "ann", cmd: "cd / && true" });
    command = await first.span(id);
    first.process.kill("SIGTERM");
    await new Promise((resolve) => first.process.once("exit", resolve));
    const folder = join(first.home, "trace/trace.jsonl");
    const trace = await Trace.open(folder, join(first.home, "db"), false, () => {});
    const programs = new ProgramRecorder({ trace, command, known: new Map() });
    programs.add(build(), 0);
    await programs.finish({ closed: Promise.resolve() }, false);
    await trace.end();
    broker = await first.again();
  }, 120_000);

  afterAll(() => broker?.stop());

  test("is drawn with what went wrong, many alike in one line", async () => {
    const { stdout, code, stderr } = await broker.cli(["trace", command.span_id, "--tree"]);
    expect(code, stderr).toBe(0);
    const lines = stdout.trimEnd().split("\n");
    expect(lines.length).toBeLessThan(30);
    expect(stdout).toMatch(/^├─ \S+ {2}\S+ {2}allow.*cd \/$/m);
    expect(stdout).toMatch(/^└─ \S+ {2}exit 2 {2}1\.0 ms {2}make -j2$/m);
    expect(stdout).toMatch(/refused {2}curl '\\x1b\[2J\\x0a\\u\{202e\}'$/m);
    expect(stdout).toMatch(/… 9996 more of sh: 9996 exit 0; .* in all; 9996 below them$/m);
    expect(stdout).toMatch(/exit 1 {2}1\.0 ms {2}cc -c 4000\.c$/m);
    expect(stdout).not.toMatch(/\p{Cf}|(?!\n)\p{Cc}/u);
    const all = await broker.cli(["trace", "show", command.span_id, "--tree", "--all"]);
    expect(all.stdout.split("\n").filter((line) => line.includes("  cc -c "))).toHaveLength(COMPILED / 2);
  });

  test("has a row for its file in what is shown of one program", async () => {
    const { document } = await broker.operator("GET", `/v1/trace/${command.span_id}`);
    const make = (document as TraceReply).children.find(({ event_type: type }) => type === "exec");
    const { stdout } = await broker.cli(["trace", make?.span_id ?? ""]);
    expect(stdout).toMatch(/^ {2}file {6}\/usr\/bin\/make \(pid 11 in its world\)$/m);
    expect(stdout).toMatch(/^ {2}outcome {3}exit 2$/m);
    expect(stdout).toMatch(/^ {2}child {5}… and more: --tree shows them$/m);
  });

  test("is one nested document as JSON", async () => {
    type Node = { span: Span; children: Node[] };
    const { stdout } = await broker.cli(["trace", command.span_id, "--tree", "--json"]);
    const root = JSON.parse(stdout) as Node;
    const make = root.children.find(({ span }) => span.event_type === "exec");
    expect(make?.span.program?.path).toBe("/usr/bin/make");
    expect(make?.children).toHaveLength(1 + COMPILED / 2);
    expect(make?.children.at(-1)?.children[0]?.span.cmd).toBe(`["cc","-c","${COMPILED / 2 - 1}.c"]`);
  });

  test("comes in pages, and so do the children of one span", async () => {
    const ids: string[] = [];
    const path = `/v1/trace/${command.span_id}`;
    for (let cursor: string | null = ""; cursor !== null; ) {
      const after: string = cursor === "" ? "" : `&cursor=${cursor}`;
      const { document } = await broker.operator("GET", `${path}/tree?limit=1000${after}`);
      const page = document as TraceTreeReply;
      expect(page.spans.length).toBeLessThanOrEqual(1000);
      ids.push(...page.spans.map(({ span_id: id }) => id));
      cursor = page.next_cursor;
    }
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).toHaveLength(COMPILED + 4);
    const make = (await broker.operator("GET", path)).document as TraceReply;
    const { span_id: id } = make.children.find(({ event_type: type }) => type === "exec") ?? command;
    const first = (await broker.operator("GET", `/v1/trace/${id}?limit=3`)).document as TraceReply;
    expect(first.children).toHaveLength(3);
    const next = (await broker.operator("GET", `/v1/trace/${id}?limit=3&cursor=${first.next_cursor}`))
      .document as TraceReply;
    expect(next.children[0]?.cmd).toBe('["sh","-c","cc -c 2.c"]');
    for (const wrong of ["limit=0", "cursor=spn_none", `cursor=${command.span_id}`, "depth=1"])
      expect((await broker.operator("GET", `/v1/trace/${id}?${wrong}`)).status, wrong).toBe(400);
    expect((await broker.operator("GET", `/v1/trace/${id}/tree?cursor=${command.span_id}`)).status).toBe(400);
    expect((await broker.operator("GET", "/v1/trace/spn_none/tree")).status).toBe(404);
  });

  test("hides no command from who lists spans, and its programs are listed when they are asked for", async () => {
    const listed = (await broker.operator("GET", "/v1/spans?limit=50")).document as SpansReply;
    expect(listed.spans.map(({ span_id: id }) => id)).toContain(command.span_id);
    expect(listed.spans.map(({ event_type: type }) => type)).not.toContain("exec");
    const { stdout } = await broker.cli(["trace", "list", "--programs", "-n", "5"]);
    expect(stdout.match(/ {2}exec {2}exit 0 {2}ann {2}1\.0 ms {2}/g)).toHaveLength(5);
    const verified = await broker.cli(["trace", "verify"]);
    expect(verified.code, verified.stderr).toBe(0);
  });
});
