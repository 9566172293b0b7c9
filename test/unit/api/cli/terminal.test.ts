import { expect, test } from "vitest";
import { misspelt } from "../../../../api/cli/terminal/agent-name.ts";
import {
  type Terminal,
  harmless,
  harmlessExcerpt,
  harmlessLine,
  printJson,
} from "../../../../api/cli/terminal/terminal.ts";

test("what a program is called cannot move the cursor, and cannot write lines of its own into a list", () => {
  const name = "red\u001b[31m\nwld_other\n  project /";
  expect(harmlessLine(name)).toBe("red\\x1b[31m\\x0awld_other\\x0a  project /");
  expect(harmless("two\nlines")).toBe("two\nlines");
});

test("marks of direction, foreign line ends and letters that are drawn as nothing are made visible", () => {
  expect(harmless("rm \u202e gnp.exe\u2066")).toBe("rm \\u{202e} gnp.exe\\u{2066}");
  expect(harmless("a\u2028b\u0085c\u3164d\u{e0041}\u00a0e")).toBe(
    "a\\u{2028}b\\x85c\\u{3164}d\\u{e0041}\\xa0e",
  );
  expect(harmless("plain – ünïcödé 漢字 👍")).toBe("plain – ünïcödé 漢字 👍");
});

test("marks that hide, enclose or cover other letters are made visible, and the marks of languages are not", () => {
  expect(harmless("a\ufe0fb\u{e0101}c\u180bd\u17b4e")).toBe("a\\u{fe0f}b\\u{e0101}c\\u{180b}d\\u{17b4}e");
  expect(harmless("0\u20e0 \ue000 \u{1d159} \u0378")).toBe("0\\u{20e0} \\u{e000} \\u{1d159} \\u{378}");
  expect(harmless(`z${"\u0335".repeat(4)}`)).toBe("z\u0335\u0335\\u{335}\\u{335}");
  expect(harmless("e\u0301 n\u0303 Vie\u0323\u0302t हिन्दी ไทย עברית")).toBe(
    "e\u0301 n\u0303 Vie\u0323\u0302t हिन्दी ไทย עברית",
  );
});

test("of a long text beginning and end are shown, and how much is not", () => {
  const text = `begin${"x".repeat(5000)};evil`;
  const shown = harmlessExcerpt(text, 100);
  expect(shown).toMatch(/^begin/);
  expect(shown).toMatch(/;evil$/);
  expect(shown).toContain(`[${text.length - 100} characters are not shown]`);
  expect(harmlessExcerpt("short", 100)).toBe("short");
});

test("JSON holds nothing that a terminal obeys, and is the same document", () => {
  const written: string[] = [];
  const out = { write: (text: string) => written.push(text) } as unknown as Terminal["out"];
  const document = { cmd: "\u009b2J \u202e\u{e0041} \n fine" };
  printJson({ out } as Terminal, document);
  const [text = ""] = written;
  expect(text).not.toMatch(/[\u0080-\u009f\u202e]/);
  expect(JSON.parse(text)).toEqual(document);
});

const LISTED = ["claude", "codex", "bot1"];

test.each([
  ["clade", "claude"],
  ["claud", "claude"],
  ["Claude", "claude"],
  ["codx", "codex"],
])("'%s' was probably meant for '%s'", (name, near) => {
  expect(misspelt(name, LISTED)).toBe(near);
});

test.each(["claude", "claude-2", "claude.review", "claude2", "bot2", "human", "gemini", "reviewer"])(
  "'%s' is a name of its own",
  (name) => {
    expect(misspelt(name, LISTED)).toBeUndefined();
  },
);

test("where nobody is listed every name is one", () => {
  expect(misspelt("clade", [])).toBeUndefined();
});
