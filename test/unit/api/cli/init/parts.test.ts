import { describe, expect, test } from "vitest";
import {
  holdsPart,
  isAsWritten,
  type Part,
  withoutPart,
  withPart,
} from "../../../../../api/cli/init/parts.ts";

const HOOK = {
  event: "PreToolUse",
  matcher: "Bash",
  hook: { type: "command", command: "'/here/substrate' hook codex", timeout: 60 },
} as const;

function roundTrip(before: string, part: Part): string {
  const { text } = withPart(before, part);
  expect(withPart(text, part)).toEqual({ text, notes: [] });
  expect(holdsPart(text, part)).toBe(true);
  expect(withoutPart(text, part)).toEqual({ text: before, notes: [] });
  expect(holdsPart(before, part)).toBe(false);
  return text;
}

describe("a hook in JSON", () => {
  const part: Part = { kind: "json-hook", hook: HOOK };

  test.each([
    '{\n  "model": "x"\n}',
    '\uFEFF{\r\n  "model": "x"\r\n}\r\n',
    '{\n  "hooks": {\n    "Stop": [] // none\n  }\n}\n',
    '{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "mine"}]}]}}',
  ])("stands beside the hooks of %j, and can be taken out", (before) => {
    expect(roundTrip(before, part)).toContain("/here/substrate");
  });

  test("of a front at another place gets the new place", () => {
    const { text } = withPart("{}", part);
    const moved = text.replace("/here/", "/old/place/");
    expect(withPart(moved, part)).toEqual({ text, notes: [] });
  });

  test.each([
    ["another matcher", (text: string) => text.replace('"Bash"', '"Read"')],
    [
      "a command that another agent reads",
      (text: string) => text.replace('"type"', '"bash": "exit 0", "type"'),
    ],
    ["a front of its own", (text: string) => text.replace("'/here/substrate'", "./substrate'")],
    ["no wait for it", (text: string) => text.replace("60", '1, "async": true')],
    [
      "a group that is switched off",
      (text: string) => text.replace('"hooks": [', '"disabled": true, "hooks": ['),
    ],
  ])("with %s, as a repository may bring it, is replaced, and that is said", (_title, change) => {
    const { text } = withPart("{}", part);
    const foreign = change(text);
    expect(foreign).not.toBe(text);
    const again = withPart(foreign, part);
    expect(JSON.parse(again.text)).toEqual(JSON.parse(text));
    expect(again.notes.length).toBeLessThanOrEqual(1);
    expect([isAsWritten(text, part), isAsWritten(foreign, part)]).toEqual([true, false]);
  });

  test("leaves a group that somebody added another hook to", () => {
    const { text } = withPart('{ "hooks": { "PreToolUse": [] } }', part);
    const shared = text.replace('"hooks": [', '"hooks": [{ "type": "command", "command": "mine" },');
    expect(shared).not.toBe(text);
    expect(JSON.parse(withoutPart(shared, part).text)).toEqual({
      hooks: { PreToolUse: [{ matcher: "Bash", hooks: [{ type: "command", command: "mine" }] }] },
    });
  });

  test.each(['{"hooks": []}', '{"hooks": {"PreToolUse": {}}}', '{"hooks": null}'])(
    "is not forced into %s",
    (text) => {
      expect(() => withPart(text, part)).toThrow("is not");
    },
  );
});

describe("a hook in TOML", () => {
  const part: Part = { kind: "toml-hook", hook: HOOK };

  test.each([
    "",
    "# mine\nmodel   = 'x'",
    '[[hooks.PreToolUse]] # mine\r\nmatcher = "X"\r\n[[hooks.PreToolUse.hooks]]\r\ntype="command"\r\ncommand = """\r\n[a]"""\r\n',
  ])("is appended to %j, and can be taken out", (before) => {
    expect(roundTrip(before, part).startsWith(before)).toBe(true);
  });

  test("is not forced into a list in brackets", () => {
    expect(() => withPart("hooks.PreToolUse = []\n", part)).toThrow("its layout leaves no place");
  });

  test("is not taken for ours where it differs", () => {
    const { text } = withPart("", part);
    for (const edited of [text.replace("timeout = 60", "timeout = 5"), text.replace('"Bash"', '"Read"')])
      expect(() => withPart(edited, part)).toThrow("differs from Substrate's: remove it by hand");
    expect(isAsWritten(text, part)).toBe(true);
    expect(isAsWritten(text.replace("timeout = 60", "timeout = 5"), part)).toBe(false);
  });

  test("stays where somebody edited it, and that is said", () => {
    const edited = withPart("", part).text.replace("timeout = 60", "timeout = 5");
    const left = withoutPart(edited, part);
    expect(left.text).toBe(edited);
    expect(left.notes[0]).toContain("was edited since, and stays");
  });

  test.each([
    ["a = 1\nb = \n", "line 3, column 1"],
    ["a = 1\na = 2\n", "line 2, column 1"],
  ])("%j is refused with its place", (text, place) => {
    expect(() => withPart(text, part)).toThrow(place);
  });
});

describe("a key of TOML", () => {
  const part: Part = { kind: "toml-key", key: "sandbox_mode", value: "danger-full-access" };

  test.each([
    ["", 'sandbox_mode = "danger-full-access"\n'],
    [
      "# c\nmodel = 'x' # m\n\n[t]\na = 1",
      `# c\nmodel = 'x' # m\nsandbox_mode = "danger-full-access"\n\n[t]\na = 1`,
    ],
    ["model = 'x'", `model = 'x'\nsandbox_mode = "danger-full-access"`],
    [
      "a = [\r\n  1,\r\n]\r\n[ t ]\r\n",
      'a = [\r\n  1,\r\n]\r\nsandbox_mode = "danger-full-access"\r\n[ t ]\r\n',
    ],
  ])("is put behind the last key of the top of %j", (before, after) => {
    expect(roundTrip(before, part)).toBe(after);
  });

  test("never becomes one of a table", () => {
    const { text } = withPart("[table]\nkey = 1\n", part);
    expect(text).toBe('sandbox_mode = "danger-full-access"\n\n[table]\nkey = 1\n');
  });

  test("of a person's own stays", () => {
    const own = 'sandbox_mode = "read-only"\n';
    expect(withPart(own, part)).toEqual({
      text: own,
      notes: ['sandbox_mode is "read-only" there, and stays'],
    });
    expect(withoutPart(own, part).text).toBe(own);
  });
});

describe("an agent in config.yaml", () => {
  const part: Part = { kind: "config-agent", agent: "codex", policy: "codex" };

  test.each([
    ["", "agents:\n  codex: { policy: codex }\n"],
    [
      "# mine\nworlds: {idle_secs:   5}",
      "# mine\nworlds: {idle_secs:   5}\nagents:\n  codex: { policy: codex }",
    ],
    [
      "agents:   # who\n    a: { policy: strict } # a\n    b:\n        policy: ci\n\nlog:\n  level: warn\n",
      "agents:   # who\n    a: { policy: strict } # a\n    b:\n        policy: ci\n    codex: { policy: codex }\n\nlog:\n  level: warn\n",
    ],
    [
      "agents: { a: { policy: strict } }\r\n",
      "agents: { a: { policy: strict }, codex: { policy: codex } }\r\n",
    ],
    ["agents:\n  a:\n", "agents:\n  a:\n  codex: { policy: codex }\n"],
  ])("is added to %j", (before, after) => {
    expect(roundTrip(before, part)).toBe(after);
  });

  test("is added to an empty map too, with other spacing", () => {
    const { text } = withPart("{} # nothing yet\n", part);
    expect(text).toContain("codex");
    expect(text).toContain("# nothing yet");
  });

  test("keeps the policy that a person gave it", () => {
    const own = "agents: { codex: { policy: strict } }\n";
    expect(withPart(own, part)).toEqual({
      text: own,
      notes: ["'codex' has the policy 'strict' there, and keeps it"],
    });
    expect(withoutPart(own, part).text).toBe(own);
  });

  test("is not added to settings that do not load", () => {
    expect(() => withPart("agents: [a]\n", part)).toThrow("config.yaml:1:");
  });
});

describe("a file of its own", () => {
  const part: Part = { kind: "whole", text: "// Written by 'substrate init'\nours\n" };

  test("takes no other file's place", () => {
    expect(() => withPart("// a person's\n", part)).toThrow("of another origin");
    expect(withPart("// Written by 'substrate init'\nolder\n", part).text).toBe(part.text);
  });
});
