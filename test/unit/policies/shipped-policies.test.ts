import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { DENIED_READS, DENIED_WRITES, pathsOf } from "../../../broker/policy/files/default-denials.ts";
import { fileLists } from "../../../broker/policy/files/file-lists.ts";
import { loadPolicy } from "../../../broker/policy/index.ts";
import type { CommandRule } from "../../../schemas/generated/types.ts";

const POLICIES = join(import.meta.dirname, "../../../policies");
const AGENTS = ["aider", "claude-code", "codex", "copilot", "cursor", "gemini", "opencode"];

/** By its program, what of a rule list is an agent's own. */
const OWN_PROGRAM = /^(aider|claude|codex|copilot|cursor-agent|gemini|opencode) /;

function policy(name: string) {
  const loaded = loadPolicy(join(POLICIES, `${name}.yaml`), POLICIES);
  if ("problems" in loaded) throw new Error(loaded.problems.map((problem) => problem.text).join("\n"));
  return loaded.ok;
}

function patterns(rules: readonly CommandRule[] | undefined): readonly string[] {
  return (rules ?? []).map((rule) => (typeof rule === "string" ? rule : rule.pattern));
}

test("the shipped policies are these, in these modes, and all but the first can be chosen by a project", () => {
  const names = readdirSync(POLICIES)
    .filter((file) => file.endsWith(".yaml"))
    .map((file) => file.replace(".yaml", ""));
  const facts = names.map((name) => [
    name,
    policy(name).id === name,
    policy(name).mode,
    policy(name).selectable,
  ]);
  expect(Object.fromEntries(facts.map(([name, ...rest]) => [name, rest]))).toEqual({
    default: [true, "observe", false],
    ...Object.fromEntries(
      ["agent", "strict", "ci", "readonly", "tour", ...AGENTS].map((name) => [name, [true, "enforce", true]]),
    ),
  });
});

test.each([...AGENTS, "strict", "ci", "readonly", "tour", "default"])(
  "%s denies the credentials and git's ways to run code that no list leaves out",
  (name) => {
    const lists = fileLists(policy(name).document);
    expect(lists.deny_read).toEqual(expect.arrayContaining([...pathsOf(DENIED_READS)]));
    expect(lists.deny_write).toEqual(expect.arrayContaining([...pathsOf(DENIED_WRITES)]));
  },
);

test.each([...AGENTS, "strict", "ci", "readonly"])("%s gives a reason for each rule that refuses", (name) => {
  const { denied = [], ask = [], warn = [] } = policy(name).document.commands ?? {};
  const silent = [...denied, ...ask, ...warn].filter(
    (rule) => typeof rule === "string" || (rule.reason ?? "").length < 10,
  );
  expect(silent).toEqual([]);
});

describe.each(AGENTS)("%s", (name) => {
  const { document } = policy(name);
  const first = policy("claude-code").document;

  test("says of everything but the agent's own program and files what the others say", () => {
    for (const list of ["denied", "ask", "isolated", "warn"] as const) {
      const common = (rules: readonly CommandRule[] | undefined) =>
        patterns(rules).filter((pattern) => !OWN_PROGRAM.test(pattern));
      expect([list, common(document.commands?.[list])]).toEqual([list, common(first.commands?.[list])]);
    }
    for (const key of ["world", "approval", "changes"] as const) expect(document[key]).toEqual(first[key]);
    for (const key of ["write", "scratch"] as const) expect(document.fs?.[key]).toEqual(first.fs?.[key]);
    expect(document.commands?.opaque).toBe("isolate");
  });

  test("names hosts of its models by name, over TLS alone, and of the home only programs and who commits", () => {
    const shared = policy("agent").document;
    const own = <Of>(list: readonly Of[] = [], common: readonly Of[] = []): readonly Of[] =>
      list.filter((one) => !common.includes(one));
    expect(document.net?.allowed).toEqual(expect.arrayContaining([...(shared.net?.allowed ?? [])]));
    const hosts = own(document.net?.allowed, shared.net?.allowed);
    expect(hosts.length).toBeGreaterThan(0);
    for (const host of hosts) expect(host).toMatch(/^(\*\.)?[a-z0-9-]+(\.[a-z0-9-]+)+:443$/);
    expect(document.fs?.read).toEqual(expect.arrayContaining([...(shared.fs?.read ?? [])]));
    for (const place of own(document.fs?.read, ["/**"]))
      expect(place).toMatch(/^\$HOME\/(\.gitconfig|\.config\/git\/(config|ignore)|[a-z./-]+\/\*\*)$/);
  });

  test("lets no command write the settings of any of the agents", () => {
    const denied = fileLists(document).deny_write;
    const settings = [
      "$PROJECT/.claude/settings.json",
      "$PROJECT/.claude/settings.local.json",
      "$PROJECT/.mcp.json",
      "$PROJECT/.codex",
      "$PROJECT/.cursor",
      "$PROJECT/.gemini",
      "$PROJECT/.opencode",
      "$PROJECT/opencode.json",
      "$PROJECT/.vscode",
      "$PROJECT/.envrc",
      "$PROJECT/.github/{hooks,agents,copilot,extensions,plugin,lsp.json,mcp.json}",
    ];
    expect(denied).toEqual(expect.arrayContaining(settings));
    expect(policy("strict").document.fs?.deny_write).toEqual(expect.arrayContaining(settings));
  });

  test("has rules about the agent's own program", () => {
    expect(patterns(document.commands?.denied).some((pattern) => OWN_PROGRAM.test(pattern))).toBe(true);
  });
});

test.each(["default", "strict", "ci"])(
  "%s keeps the same caches in the world as the agents' policies, and reaches the same registries",
  (name) => {
    const [{ document }, { document: first }] = [policy(name), policy("agent")];
    expect(document.fs?.scratch).toEqual(first.fs?.scratch);
    expect(document.net?.allowed).toEqual(first.net?.allowed);
  },
);

test.each(["aider", "gemini"])(
  "%s, which takes variables from .env, lets no command write that file",
  (name) => {
    expect(fileLists(policy(name).document).deny_write).toContain("$PROJECT/.env");
  },
);

test("default shows a program with a home of its own the same places of the real one as the agents' policies", () => {
  expect(policy("default").document.fs?.read).toEqual(policy("agent").document.fs?.read);
});

test.each(["default", "strict"])("%s isolates the installers that the agents' policies isolate", (name) => {
  const installers = patterns(policy("claude-code").document.commands?.isolated);
  expect(patterns(policy(name).document.commands?.isolated)).toEqual(installers);
});

test("every one of strict's dangerous patterns is there", () => {
  expect(patterns(policy("strict").document.commands?.denied)).toEqual(
    expect.arrayContaining([
      "rm -rf /",
      "rm -rf ~",
      "dd if=* *",
      "mkfs *",
      "mkfs.* *",
      "chmod 777 *",
      "curl * | sh",
      "wget * | sh",
      "eval *",
      ": | :",
      "git push --force *",
      "git reset --hard *",
    ]),
  );
});
