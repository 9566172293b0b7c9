import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  PassedRules,
  decide,
  loadPolicy,
  parsePolicy,
  readShell,
} from "../../../../../broker/policy/index.ts";
import type { PolicyLoad } from "../../../../../broker/policy/rules/decision.ts";

const WHERE = { project: "/projects/app", home: "/home/ann", cwd: "/projects/app" };

function problemsOf(text: string): readonly string[] {
  const loaded = parsePolicy(text, "bad.yaml");
  return "problems" in loaded ? loaded.problems.map((problem) => problem.text) : [];
}

function loadedFrom(text: string) {
  const loaded = parsePolicy(text, "good.yaml");
  if ("problems" in loaded) throw new Error(loaded.problems.map((problem) => problem.text).join("\n"));
  return loaded.ok;
}

/** The source document's policy: it has to load unchanged. Host names are examples. */
const SOURCE_POLICY = `
id: default
name: Development Policy
mode: observe  # Start in observe mode, switch to enforce when ready

fs:
  read: ["/**"]  # Read anything
  write:
    - "$PROJECT/**"  # Write only in project
    - "/tmp/**"
    - "$HOME/.cache/**"
    - "$HOME/.npm/**"
    - "$HOME/.cargo/**"

net:
  allowed:
    - github.com
    - registry.npm.example
  dns:
    pinned: true           # Pin to 127.0.0.53 stub resolver
    refresh_secs: 60       # Refresh IP sets every minute
  egress_budget:
    bytes_per_sec: 10485760  # 10 MB/s
    total_bytes: 1073741824  # 1 GB total per session

commands:
  denied:
    - "sudo *"
    - "rm -rf /"
    - "chmod 777 *"
    - "curl * | sh"  # Prevent curl | bash patterns
  isolated:  # Run these in ephemeral overlayfs
    - "pip install *"
    - "npm install *"
    - "cargo install *"
    - "go get *"
    - "gem install *"

world:
  reuse_session: true
  isolate_network: true
  enable_preload: false  # Enable when ready for telemetry
  limits:
    cpu: "2"      # 2 CPUs
    memory: "2Gi" # 2 GB RAM

approval:
  interactive: true
  auto_approve:
    - "git *"
    - "cargo build"
    - "cargo test"
    - "npm test"
    - "make"

# Privacy settings for graph database
privacy:
  ignore_paths:
    - "~/.ssh"
    - "~/Library"
    - "**/.env"
    - "**/secrets"
  hash_code_only: true
  index_user_docs: false
`;

test("the source document's policy loads unchanged, and says what is not carried out yet", () => {
  const policy = loadedFrom(SOURCE_POLICY);
  expect(decide(policy, readShell("curl x | bash"), WHERE)).toMatchObject({
    verdict: "would_deny",
    rule: { source: "good.yaml:31" },
  });
  expect(decide(policy, readShell("npm install x"), WHERE)).toMatchObject({ verdict: "would_isolate" });
  expect(policy.notes.join("\n")).toMatch(/privacy has no effect yet: the index of files/);
  expect(policy.net).toMatchObject({
    entries: [
      { written: "github.com", source: "good.yaml:17" },
      { written: "registry.npm.example", source: "good.yaml:18" },
    ],
    source: "good.yaml:16",
  });
});

describe("the hash of a policy", () => {
  test("does not depend on layout, comments or the order of keys", () => {
    const one = loadedFrom("id: a\nname: A\ncommands: { denied: [x], opaque: deny }");
    const other = loadedFrom("# c\nname: 'A'\ncommands:\n  opaque: deny\n  denied:\n    - x\nid: a");
    expect(one.hash).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(other.hash).toBe(one.hash);
  });

  test("depends on the order of rules and on every value", () => {
    const hashes = ["[x, y]", "[y, x]", "[x]", "[]"].map(
      (list) => loadedFrom(`{ id: a, name: A, commands: { denied: ${list} } }`).hash,
    );
    expect(new Set(hashes).size).toBe(4);
  });
});

describe("a file that is no policy is refused with line and column", () => {
  test.each([
    ["an unknown key", "id: a\nname: A\ncommands:\n  denyd: []\n", /^bad\.yaml:4:3: .*denyd.*denied/],
    ["a missing name", "id: a\n", /^bad\.yaml:1:1: .*name/],
    ["a wrong type", "id: a\nname: A\ncommands:\n  denied: sudo\n", /^bad\.yaml:4:\d+: .*denied/],
    [
      "a rule of the wrong type",
      "id: a\nname: A\ncommands:\n  denied:\n    - ok\n    - 7\n",
      /^bad\.yaml:6:7: /,
    ],
    ["an id with a capital", "id: A\nname: A\n", /^bad\.yaml:1:1: .*id/],
    ["a duplicate key", "id: a\nname: A\nname: B\n", /^bad\.yaml:3:1: .*unique/],
    ["broken YAML", "id: a\nname: [\n", /^bad\.yaml:\d+:\d+: /],
    ["two documents", "id: a\nname: A\n---\nid: b\nname: B\n", /^bad\.yaml:\d+:\d+: /],
    ["an unknown tag", "id: !evil a\nname: A\n", /^bad\.yaml:1:5: .*tag/],
    ["a NUL", 'id: a\nname: "A\0"\n', /^bad\.yaml:2:1: .*NUL/],
    ["nothing", "", /^bad\.yaml:1:1: /],
    ["a list", "- a", /^bad\.yaml:1:1: /],
    [
      "a wrong list that another key stands for",
      "id: a\nname: A\ncommands:\n  denied: &them [ok, 7]\n  ask: *them\n",
      /^bad\.yaml:4:22: .*denied\[1\][^]*\nbad\.yaml:5:3: .*ask\[1\]/,
    ],
    [
      "a rule without a pattern, among comments and other lines",
      "id: a\nname: A\n\ncommands: # c\n  denied:\n    # c\n    - ok\n    - reason: x\n      match:\n        - y\n",
      /^bad\.yaml:8:7: .*denied\[1\]\.pattern/,
    ],
    [
      "an example that is no text",
      "id: a\nname: A\ncommands:\n  denied:\n    - pattern: x\n      match:\n        - x\n        - 7\n",
      /^bad\.yaml:8:11: .*match\[1\]/,
    ],
    [
      "aliases that multiply",
      `a: &a [x,x,x,x,x,x,x,x,x]\n${"bcdefgh"
        .split("")
        .map((key, at) => `${key}: &${key} [${Array(9).fill(`*${"abcdefgh"[at]}`).join(",")}]`)
        .join("\n")}\n`,
      /alias/i,
    ],
    ["thousands of brackets", "[".repeat(50_000), /^bad\.yaml:\d+:\d+: /],
    [
      "a pipe to nowhere",
      'id: a\nname: A\ncommands: { denied: ["curl * |"] }\n',
      /^bad\.yaml:3:22: .*one side/,
    ],
    [
      "a rule that misses its own example",
      "id: a\nname: A\ncommands:\n  denied:\n    - pattern: sudo x\n      match: [sudo y]\n",
      /^bad\.yaml:5:7: 'sudo x' must match its own example 'sudo y', but does not$/,
    ],
    [
      "a rule that catches its own counter-example",
      "id: a\nname: A\ncommands:\n  denied:\n    - { pattern: sudo *, not_match: [env sudo y] }\n",
      /^bad\.yaml:5:7: 'sudo \*' must not match/,
    ],
  ])("%s", (_what, text, expected) => {
    expect(problemsOf(text).join("\n")).toMatch(expected);
  });
});

describe("what this version cannot enforce", () => {
  const withKey = (key: string, mode = "enforce") => problemsOf(`id: a\nname: A\nmode: ${mode}\n${key}\n`);

  test.each(['["/**"]', '["!.env"]', '["a/@(b|c)"]', '["src/[ab"]'])(
    "a deny list with %s is refused in either mode, at its line",
    (list) => {
      for (const mode of ["enforce", "observe"] as const)
        expect(withKey(`fs: { deny_read: ${list} }`, mode).join()).toMatch(
          /Cannot use .* in fs\.deny_read: it /,
        );
    },
  );

  test("budgets are carried out, so they load without a word", () => {
    for (const mode of ["enforce", "observe"])
      expect(
        loadedFrom(`id: a\nname: A\nmode: ${mode}\nbudgets: { default: { max_execs: 10 } }\n`).notes,
      ).toEqual([]);
  });

  test.each([
    "net: { dns: { refresh_secs: 5 } }",
    "net: { egress_budget: { total_bytes: 5 } }",
    "budgets: { default: { max_egress_bytes: 5 } }",
    "budgets: { shared: { max_egress_bytes: 5 } }",
  ])("%s is refused with the host's network, in either mode", (key) => {
    const host = "world: { isolate_network: false }";
    const [, path = ""] = /^(\w+: \{ \w+)/.exec(key) ?? [];
    for (const mode of ["enforce", "observe"]) {
      expect(withKey(`${key}\n${host}`, mode).join()).toContain(`Cannot keep ${path.replace(": { ", ".")}`);
      expect(withKey(host, mode)).toEqual([]);
      expect(withKey(key, mode)).toEqual([]);
    }
  });

  test("published ports, and names that the policy starts from, are refused with the host's network", () => {
    const both = "world: { isolate_network: false, publish: [3000] }";
    expect(withKey(both).join()).toContain("Cannot keep world.publish");
    expect(withKey("world: { isolate_network: true, publish: [3000] }")).toEqual([]);
  });

  test.each([
    "net: { dns: { pinned: false } }",
    "net: { allowed: [localhost] }",
    "world: { limits: { pids: 5 }, seccomp: enforce, require: [cgroup] }",
    "privacy: { hash_code_only: true }",
  ])("%s makes nothing weaker, so it loads and is noted", (key) => {
    expect(withKey(key)).toEqual([]);
    expect(loadedFrom(`id: a\nname: A\nmode: enforce\n${key}\n`).notes.length).toBeGreaterThan(0);
  });

  test.each([
    "net: { allowed: [github.com], dns: { pinned: true }, egress_budget: { total_bytes: 1 } }",
    "world: { seccomp: log, publish: [3000] }",
    "commands: { ask: [x], opaque: ask }",
    "approval: { require: true, preview: auto, timeout_secs: 5 }",
    'changes: { apply: agent, auto_apply: ["$PROJECT/x"] }',
  ])("%s is carried out, so it loads without a word", (key) => {
    expect(loadedFrom(`id: a\nname: A\nmode: enforce\n${key}\n`).notes).toEqual([]);
  });

  test.each([
    [
      '{ deny_write: ["$PROJECT/x"] }',
      /^fs.deny_write replaces .* '\$PROJECT\/.git\/hooks', .*extends: default/,
    ],
    ['{ deny_write: ["$PROJECT/.git/hooks"] }', /so commands may write .*: '\$PROJECT\/.git\/config', /],
    ["{ deny_read: [] }", /so commands may read .*: '\$HOME\/.ssh', .* and \d+ more/],
  ])("%s says which built-in denials it replaces", (fs, note) => {
    expect(loadedFrom(`id: a\nname: A\nfs: ${fs}\n`).notes).toEqual([expect.stringMatching(note)]);
  });

  test.each([
    '{ deny_write: ["$PROJECT/.git/**", "$PROJECT/x"] }',
    '{ deny_write: ["**/.git"] }',
    "{ deny_write: [], write: [] }",
    '{ deny_read: ["$HOME/.ssh"], read: ["$PROJECT/**"] }',
    '{ write: ["$PROJECT/**"] }',
  ])("%s opens nothing of theirs, and loads without a word", (fs) => {
    expect(loadedFrom(`id: a\nname: A\nfs: ${fs}\n`).notes).toEqual([]);
  });
});

describe("from a file", () => {
  let folder = "";
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "policy-"));
  });
  afterAll(() => rm(folder, { recursive: true }));

  test.each([
    ["missing.yaml", null, /^missing\.yaml: Cannot read .*ENOENT/],
    ["latin.yaml", Buffer.from([0x69, 0x64, 0x3a, 0xff]), /^latin\.yaml: The file is not UTF-8 text/],
    ["large.yaml", Buffer.alloc(256 * 1024 + 1, "#"), /^large\.yaml: A policy may have at most/],
    [".", null, /not a regular file/],
  ])("%s comes back as a problem", async (name, content, expected) => {
    if (content !== null) await writeFile(join(folder, name), content);
    const loaded = loadPolicy(join(folder, name), folder);
    expect("problems" in loaded ? loaded.problems[0]?.text : "").toMatch(expected);
  });

  test("a good one is named by its file", async () => {
    await writeFile(join(folder, "mine.yaml"), "id: mine\nname: Mine\ncommands:\n  denied: [x]\n");
    const loaded = loadPolicy(join(folder, "mine.yaml"), folder);
    if ("problems" in loaded) throw new Error(loaded.problems[0]?.text);
    expect(decide(loaded.ok, readShell("x"), WHERE).rule?.source).toBe("mine.yaml:4");
  });
});

const LISTS = ["denied", "ask", "allowed"] as const;
type Lists = Readonly<Record<(typeof LISTS)[number], readonly string[]>>;

/** About few programs, so that several rules share one; with stars for a program, pipelines, and examples that fail. */
const rule = fc.constantFrom(
  "git push *",
  "git push --force *",
  "git status",
  "rm *",
  "rm -rf *",
  "* --danger",
  "curl * | sh",
  "| sh",
  '{ pattern: "npm i *", match: ["npm i x"], reason: "Why" }',
  '{ pattern: "npm i *", match: ["npm i x"], reason: "Another why" }',
  '{ pattern: "npm i *", match: ["npm ls"] }',
  '{ pattern: "rm *", not_match: ["rm x"] }',
);
const some = fc.array(rule, { maxLength: 6 });
const lists: fc.Arbitrary<Lists> = fc.record({ denied: some, ask: some, allowed: some });
const edit = fc.record({
  list: fc.constantFrom(...LISTS),
  at: fc.nat(5),
  drop: fc.nat(2),
  put: fc.array(rule, { maxLength: 2 }),
  above: fc.boolean(),
});

function written(of: Lists, above: number): string {
  const items = (list: keyof Lists): string =>
    of[list].map((each) => `    - ${each.startsWith("{") ? each : JSON.stringify(each)}\n`).join("");
  const commands = LISTS.filter((list) => of[list].length > 0).map((list) => `  ${list}:\n${items(list)}`);
  return `${"# above\n".repeat(above)}id: p\nname: P\ncommands:\n  opaque: deny\n${commands.join("")}`;
}

/** All that decisions, explanations and records take from a policy. */
function told(load: PolicyLoad): unknown {
  if ("problems" in load) return load.problems;
  const { at: _, ...policy } = load.ok;
  return policy;
}

test("a policy after edits is the one that a first reading of its file makes", () => {
  let [loaded, refused] = [0, 0];
  fc.assert(
    fc.property(lists, fc.array(edit, { minLength: 1, maxLength: 6 }), (before, edits) => {
      let now: Lists = before;
      let above = 0;
      const passed = new PassedRules();
      parsePolicy(written(now, above), "p.yaml", passed);
      for (const { list, at, drop, put, above: comment } of edits) {
        const rules = now[list];
        now = { ...now, [list]: [...rules.slice(0, at), ...put, ...rules.slice(at + drop)] };
        above += comment ? 1 : 0;
        const text = written(now, above);
        const again = parsePolicy(text, "p.yaml", passed);
        expect(told(again)).toEqual(told(parsePolicy(text, "p.yaml")));
        if ("ok" in again) loaded += 1;
        else refused += 1;
      }
    }),
    { numRuns: 500 },
  );
  expect(Math.min(loaded, refused)).toBeGreaterThan(100);
});

test("an edit tries the examples of the rule that it changed, and of no other", () => {
  const rules = Array.from({ length: 300 }, (_, at) => `{ pattern: "p${at} *", match: ["p${at} x"] }`);
  const text = written({ denied: rules, ask: [], allowed: [] }, 0);
  const passed = new PassedRules();
  const first = parsePolicy(text, "p.yaml", passed);
  const second = parsePolicy(text.replace('"p7 *"', '"p7 x*"'), "p.yaml", passed);
  const bad = parsePolicy(text.replace('"p7 *"', '"q7 *"'), "p.yaml", passed);
  if (!("ok" in first && "ok" in second)) throw new Error("Both must load");
  const [before, after] = [first.ok.rules.all, second.ok.rules.all];
  const readAnew = after.filter(({ stages }, order) => stages !== before[order]?.stages);
  expect(readAnew.map(({ pattern }) => pattern)).toEqual(["p7 x*"]);
  expect("problems" in bad && bad.problems.map(({ line }) => line)).toEqual([13]);
});
