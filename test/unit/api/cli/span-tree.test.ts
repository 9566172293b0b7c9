/** The tree below a span: in pages from the trace, and drawn. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { cutToWidth } from "../../../../api/cli/terminal/rows.ts";
import { printTree } from "../../../../api/cli/words/tree-lines.ts";
import type { Terminal } from "../../../../api/cli/terminal/terminal.ts";
import type { Tree } from "../../../../api/cli/words/tree-folds.ts";
import { DEEPEST, treePage } from "../../../../broker/spans/span-tree.ts";
import type { SpanRecord, Trace } from "../../../../broker/spans/trace.ts";
import { type Span, type TestTrace, record, testTrace } from "../../../support/trace/traces.ts";

let at: TestTrace;
let trace: Trace;

beforeEach(async () => {
  at = testTrace();
  trace = await at.open();
});

afterEach(async () => {
  await trace.end();
  at.remove();
});

function program(id: string, parent: string | null, change: Partial<SpanRecord> = {}): SpanRecord {
  const program = {
    path: "/usr/bin/cc",
    pid: 7,
    started_at: "2026-01-01T00:00:00.000000Z",
    cut: false,
    replaced: false,
  };
  const fields = { parent_span: parent, event_type: "exec", outcome: "ended", exit: 0 } as const;
  return record(id, { ...fields, duration_ms: 2, cmd: '["cc","-c","x.c"]', program, ...change });
}

function whole(root: string, limit: number, sees: (agent: string | null) => boolean = () => true) {
  const spans: Span[] = [];
  let after: string | undefined;
  do {
    const page = treePage(trace, { root, after, limit, sees });
    if (page === undefined) throw new Error(`${after} is not in the tree`);
    spans.push(...page.spans);
    after = page.next ?? undefined;
  } while (after !== undefined);
  return spans.map(({ span_id: id }) => id.slice("spn_".length));
}

describe("the tree below a span", () => {
  test("comes depth first in pages of any size, from what is committed and what is not", async () => {
    trace.event(program("spn_a", null));
    for (const [id, parent] of [
      ["b", "a"],
      ["c", "b"],
      ["d", "a"],
      ["e", "d"],
      ["f", "e"],
      ["g", "a"],
    ])
      trace.event(program(`spn_${id}`, `spn_${parent}`));
    trace.event(program("spn_other", null));
    for (const limit of [1, 2, 3, 100]) expect(whole("spn_a", limit)).toEqual([..."abcdefg"]);
    await trace.end();
    trace = await at.open();
    trace.event(program("spn_h", "spn_e"));
    for (const limit of [1, 3, 100]) expect(whole("spn_a", limit)).toEqual([..."abcdefhg"]);
    expect(whole("spn_d", 2)).toEqual([..."defh"]);
    expect(treePage(trace, { root: "spn_d", after: "spn_b", limit: 9, sees: () => true })).toBeUndefined();
    expect(treePage(trace, { root: "spn_d", after: "no", limit: 9, sees: () => true })).toBeUndefined();
  });

  test("hides what belongs to others with all below it", () => {
    trace.event(program("spn_a", null));
    trace.event(program("spn_b", "spn_a", { agent_id: "ben" }));
    trace.event(program("spn_c", "spn_b"));
    trace.event(program("spn_d", "spn_a"));
    expect(whole("spn_a", 1, (agent) => agent === "ann")).toEqual(["a", "d"]);
  });

  test("ends, whoever names whom as a parent, and however deep it is", () => {
    trace.event(program("spn_x", "spn_y"));
    trace.event(program("spn_y", "spn_x"));
    expect(whole("spn_x", 1)).toEqual(["x", "y"]);
    const name = (depth: number): string => `spn_${String(depth).padStart(4, "0")}`;
    for (let depth = 0; depth < DEEPEST + 50; depth += 1)
      trace.event(program(name(depth), depth === 0 ? null : name(depth - 1)));
    expect(whole(name(0), 100)).toHaveLength(DEEPEST + 1);
    expect(whole(name(DEEPEST), 7)).toHaveLength(50);
  });

  test("of twenty thousand children is read page by page as fast at its end as at its beginning", async () => {
    trace.event(program("spn_root", null));
    const id = (number: number): string => `spn_${String(number).padStart(6, "0")}`;
    for (let from = 0; from < 20_000; from += 500)
      trace.addAll(Array.from({ length: 500 }, (_, more) => program(id(from + more), "spn_root")));
    await trace.end();
    trace = await at.open();
    const took: number[] = [];
    let count = 0;
    for (let after: string | undefined; ; ) {
      const began = process.cpuUsage();
      const page = treePage(trace, { root: "spn_root", after, limit: 500, sees: () => true });
      const { user, system } = process.cpuUsage(began);
      took.push(user + system);
      count += page?.spans.length ?? 0;
      if (page?.next === null || page === undefined) break;
      after = page.next;
    }
    expect(count).toBe(20_001);
    const [early, late] = [took.slice(2, 12), took.slice(-12, -2)].map((some) => Math.min(...some));
    expect(late ?? 0).toBeLessThan(5 * (early ?? 0) + 5000);
  }, 60_000);
});

function drawn(root: Tree, options: { columns?: number; all?: boolean } = {}): readonly string[] {
  const text: string[] = [];
  const { columns = 0 } = options;
  const out = { isTTY: columns > 0, columns, write: (line: string) => text.push(line) };
  const terminal = { out, environment: { NO_COLOR: "1" } } as unknown as Terminal;
  printTree(terminal, root, options.all === true);
  return text.join("").trimEnd().split("\n");
}

function tree(change: Partial<SpanRecord>, children: Tree[] = []): Tree {
  const span = { ...program("spn_p", "spn_a", change), seq: 1, prev: null, hash: "sha256:0" };
  return { span, children };
}

describe("a drawn tree", () => {
  const root = (children: Tree[]): Tree =>
    tree({ event_type: "command_complete", cmd: "make", span_id: "spn_root" }, children);

  test("says what ran, how it ended and how long it took", () => {
    const made = tree({ cmd: '["make","it\'s"]', duration_ms: 61_000 }, [
      tree({ exit: 1, duration_ms: 1234 }),
      tree({ exit: 143, signal: "SIGTERM" }),
      tree({ exit: null, outcome: "refused", duration_ms: null }),
      tree({ exit: null, outcome: null, duration_ms: null }),
    ]);
    expect(drawn(root([made])).slice(1)).toEqual([
      "└─ spn_p  exit 0  1 min 1 s  make 'it'\\''s'",
      "   ├─ spn_p  exit 1  1.2 s  cc -c x.c",
      "   ├─ spn_p  SIGTERM  2.0 ms  cc -c x.c",
      "   ├─ spn_p  refused  cc -c x.c",
      "   └─ spn_p  running  cc -c x.c",
    ]);
  });

  test("folds many alike into one line that says how they ended, and shows those that went wrong", () => {
    const many = Array.from({ length: 300 }, (_, number) =>
      tree({ exit: number === 250 ? 2 : 0, span_id: `spn_${number}` }, number === 200 ? [tree({})] : []),
    );
    expect(drawn(root(many)).slice(1)).toEqual([
      "├─ spn_0  exit 0  2.0 ms  cc -c x.c",
      "├─ spn_1  exit 0  2.0 ms  cc -c x.c",
      "├─ spn_2  exit 0  2.0 ms  cc -c x.c",
      "├─ … 296 more of cc: 296 exit 0; 592 ms in all; 1 below them",
      "└─ spn_250  exit 2  2.0 ms  cc -c x.c",
    ]);
    expect(drawn(root(many), { all: true })).toHaveLength(302);
    const various = Array.from({ length: 100 }, (_, number) =>
      tree({
        cmd: `["p${number}"]`,
        program: { ...program("p", null).program, path: `/p${number}` } as never,
      }),
    );
    expect(drawn(root(various)).at(-1)).toBe("└─ … 40 more: 40 exit 0; 80 ms in all");
  });

  test("fits a terminal, which no word of a program can rule", () => {
    const evil = tree({ cmd: JSON.stringify(["sh", "-c", "\u001b[2J\u009b1m\r\n└─ fake \u202e漢字漢字"]) });
    const [, wide] = drawn(root([evil]));
    expect(wide).toContain("\\x1b[2J\\x9b1m\\x0d\\x0a└─ fake \\u{202e}漢字");
    const narrow = drawn(root([evil]), { columns: 40 });
    expect(narrow).toHaveLength(2);
    expect(narrow[1]).toBe("└─ exit 0  2.0 ms  sh -c '\\x1b[2J\\x9b1m…");
    expect(cutToWidth("漢字漢字", 5)).toBe("漢字…");
    expect(cutToWidth("abcde", 5)).toBe("abcde");
    expect(cutToWidth("\u001b[31mabcdef\u001b[39m", 4)).toBe("\u001b[31mabc…\u001b[39m");
  });

  test("says where what is deeper is to be looked for", () => {
    const deep: Tree = { ...tree({ span_id: "spn_deep" }), cut: true };
    expect(drawn(root([deep])).at(-1)).toBe("   └─ … the rest: substrate trace spn_deep --tree");
  });
});
