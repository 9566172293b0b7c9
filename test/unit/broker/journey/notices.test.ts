import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { Notices } from "../../../../broker/journey/notices.ts";
import type { SpanRecord } from "../../../../broker/spans/trace.ts";
import type { FsDiff } from "../../../../schemas/generated/types.ts";

const RULE = { list: "commands.denied", pattern: "sudo *", fragment: "sudo id", source: "default.yaml:3" };

/** A violation span, as far as notices look at one. */
function line(kind: string, subject: string, more: Partial<SpanRecord> = {}): SpanRecord {
  const decision = { verdict: "deny", mode: "enforce", rule: RULE } as const;
  const fields = { span_id: `spn_${subject}`, message: `about ${subject}`, violation: { kind, subject } };
  return { ...fields, decision, ...more } as SpanRecord;
}

const start = (words: readonly string[], more: Partial<SpanRecord> = {}): SpanRecord =>
  line("program", JSON.stringify(words), {
    code: "policy_denied",
    message: `no ${words.join(" ")}`,
    ...more,
  });

const UNCHANGED: FsDiff = {
  ...{ writes: [], mods: [], deletes: [], dirs: [], autorun: [], world_only: [] },
  ...{ held: false, truncated: false, summary: null, tree_hash: null },
};

describe("the notices of a reply", () => {
  test("name the program of a start whose words are cut off, and none in a count of starts", () => {
    const notices = new Notices("spn_own");
    const cut = {
      ...start(["/usr/bin/gcc"]),
      violation: { kind: "program", subject: '["/usr/bin/gcc","-I/some… (9000 characters)' },
    } as const;
    notices.take(cut);
    const longWord = { kind: "program", subject: `["${"x".repeat(1000)}… (9000 characters)` } as const;
    const program = { path: "/opt/odd", pid: 1, started_at: "", cut: false, replaced: false };
    notices.take({ ...start(["x"]), violation: longWord, program });
    const counted = { verdict: "would_deny", mode: "observe", rule: RULE } as const;
    notices.take(line("program", "174 more", { decision: counted }));
    expect(notices.list().map(({ program: name, kind }) => [kind, name])).toEqual([
      ["denied", "gcc"],
      ["denied", "odd"],
      ["observed", null],
    ]);
  });

  test("say what each kind of span was, and count alike ones", () => {
    const notices = new Notices("spn_own");
    notices.take(start(["/usr/bin/sudo", "id"]));
    notices.take(start(["sudo", "-u", "x"]));
    notices.take(
      start(["git", "push"], {
        approval_id: "apr_1",
        code: "approval_required",
        decision: { verdict: "ask", mode: "enforce", rule: RULE },
      }),
    );
    notices.take(line("denied_name", "/p/.env"));
    notices.take(line("connection", "a.example:443"));
    notices.take(line("connection", "a.example:443"));
    notices.take(line("name", "b.example"));
    notices.take(line("limit", "max_runtime_ms"));
    const rest = { rule: null, program: null };
    expect(notices.list()).toEqual([
      {
        ...{ kind: "denied", message: "no /usr/bin/sudo id", rule: RULE, program: "sudo", count: 2 },
        span_id: 'spn_["/usr/bin/sudo","id"]',
      },
      {
        ...{ kind: "approval_required", message: "no git push", rule: RULE, program: "git", count: 1 },
        ...{ span_id: 'spn_["git","push"]', approval_id: "apr_1" },
      },
      { ...rest, kind: "quarantined", message: "about /p/.env", count: 1, span_id: "spn_/p/.env" },
      { ...rest, kind: "network", message: "about a.example:443", count: 2, span_id: "spn_a.example:443" },
      { ...rest, kind: "network", message: "about b.example", count: 1, span_id: "spn_b.example" },
      { ...rest, kind: "budget", message: "about max_runtime_ms", count: 1, span_id: "spn_max_runtime_ms" },
    ]);
  });

  test("leave out what a program writes by the way, and name what else was not written", () => {
    const notices = new Notices("spn_own");
    for (const path of [
      "/usr/lib/gdb/__pycache__",
      "/opt/x/__pycache__/y.cpython-311.pyc.1",
      "/h/.lesshsQ",
      "/var/cache/man/cat1/catZ8AOwD",
      "/h/.viminfo",
      "/h/.viminfo.tmp",
      "/h/.python_history-12",
      "/opt/x/y.pyc",
      "/h/.vimrc",
    ])
      notices.take(line("write", path));
    expect(notices.list().map(({ message }) => message)).toEqual(["about /opt/x/y.pyc", "about /h/.vimrc"]);
  });

  test("name the first refused writes of a folder, and count the rest", () => {
    const notices = new Notices("spn_own");
    for (const name of ["one", "two", "two", "three", "a", "b", "c", "d"])
      notices.take(line("write", `/h/${name}`));
    notices.take(line("write", "/other/x"));
    expect(notices.list().map(({ message, count }) => [message, count])).toEqual([
      ["about /h/one. In the same folder also 'two', 'three', 'a', 'b', 'c', 1 more", 8],
      ["about /other/x", 1],
    ]);
  });

  test("leave out what went on, what log mode lets through, and the world's own limits", () => {
    const notices = new Notices("spn_own");
    notices.take(line("program", '["sudo"]'));
    notices.take(line("program", "12 more"));
    notices.take(line("system_call", "mount"));
    notices.take(line("limit", "memory"));
    notices.takeChanges(UNCHANGED, false);
    expect(notices.list()).toEqual([]);
  });

  test("say what is held and what stayed in the world", () => {
    const notices = new Notices("spn_own");
    notices.takeChanges({ ...UNCHANGED, held: true, writes: ["a", "b"], mods: ["c"] }, false);
    notices.takeChanges({ ...UNCHANGED, world_only: ["/h/a", "/h/b"] }, false);
    expect(notices.list()).toMatchObject([
      { kind: "held", count: 3, span_id: "spn_own" },
      { kind: "world_only", count: 2, message: expect.stringContaining("'/h/a' and 1 more") },
    ]);
  });

  test.each([
    [["/home/a/.npm/x"], "'/home/a/.npm/x'"],
    [
      ["/home/a/.npm/_cacache/content/1", "/home/a/.npm/_npx/2", "/home/a/.npm/_npx/3"],
      "2 paths below '/home/a/.npm/_npx'",
    ],
    [["/home/a/.npm/1", "/home/a/.npmrc"], "2 paths below '/home/a'"],
    [["/home/a/.npm/1", "/var/x"], "'/home/a/.npm/1' and 1 more"],
  ])("name the folder around what stayed in the world: %j", (world_only, words) => {
    const notices = new Notices("spn_own");
    notices.takeChanges({ ...UNCHANGED, world_only }, false);
    expect(notices.list()[0]?.message).toBe(
      `Writes stayed in the world and did not reach the host: ${words}`,
    );
  });

  test("say that nothing of an isolated command's world outlives the command", () => {
    const notices = new Notices("spn_own");
    notices.takeChanges({ ...UNCHANGED, world_only: ["/home/a/.gem/x"] }, true);
    expect(notices.list()[0]?.message).toContain("no later command sees them: '/home/a/.gem/x'");
  });

  test("leave out npm's logs, unless npm said that one of them is to be read", () => {
    const logs = ["/h/.npm/_logs/1-debug-0.log", "/h/.npm/_logs/2-debug-0.log"];
    const quiet = new Notices("spn_own");
    quiet.takeChanges({ ...UNCHANGED, world_only: logs }, false, () => "npm error something\n");
    expect(quiet.list()).toEqual([]);
    const told = new Notices("spn_own");
    const said = `npm error A complete log of this run can be found in: ${logs[1]}\n`;
    told.takeChanges({ ...UNCHANGED, world_only: [...logs, "/h/.npm/x"] }, false, () => said);
    expect(told.list()).toMatchObject([
      { kind: "world_only", count: 2, message: expect.stringContaining("2 paths below '/h/.npm'") },
    ]);
  });

  test.each([
    [20, 20, 0],
    [21, 21, 1],
    [5000, 21, 4980],
  ])("of %i different things are %i, the last of which stands for %i", (things, length, more) => {
    const notices = new Notices("spn_own");
    for (let n = 0; n < things; n += 1) notices.take(line("denied_name", `/p/${n}/.env`));
    const list = notices.list();
    expect(list).toHaveLength(length);
    if (more > 0) {
      expect(list.at(-1)).toMatchObject({ kind: "quarantined", count: more, span_id: "spn_own" });
      expect(list.at(-1)?.message).toContain(`${more} more`);
    }
  });
});

describe("the kinds of notices", () => {
  test("in api/README.md are those of the schema, and the spans behind them those that become one", () => {
    const text = readFileSync(new URL("../../../../api/README.md", import.meta.url), "utf8");
    const table = text.slice(text.indexOf("\n## Notices\n"), text.indexOf("\n## Errors\n"));
    const rows = [...table.matchAll(/^\| `(\w+)` \| [^|]+ \| ([^|]*) ?\|$/gm)];
    const schema = JSON.parse(
      readFileSync(new URL("../../../../schemas/shared.schema.json", import.meta.url), "utf8"),
    ) as { definitions: { notice: { properties: { kind: { enum: string[] } } } } };
    expect(rows.map(([, kind]) => kind)).toEqual(schema.definitions.notice.properties.kind.enum);
    for (const [, kind, spans = ""] of rows)
      for (const [, violation = ""] of spans.matchAll(/`(\w+)`/g)) {
        if (violation === "program") continue;
        const notices = new Notices("spn_own");
        notices.take(line(violation, violation === "limit" ? "max_runtime_ms" : "subject"));
        expect(notices.list().map((notice) => notice.kind)).toEqual([kind]);
      }
  });
});
