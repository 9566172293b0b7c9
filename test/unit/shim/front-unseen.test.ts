/** Characters that the native front escapes: the same as Node does, of all that there are. */
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { harmlessLine } from "../../../api/cli/terminal/terminal.ts";
import { FrontPlace } from "../../support/front/front-place.ts";

/** Version of Unicode of the committed table. A Node of another version knows other letters, or fewer. */
const UNICODE = "17.0";

const TABLE = fileURLToPath(new URL("../../../shim/client/unseen.h", import.meta.url));

const LAST = 0x10ffff;

type Range = readonly [first: number, last: number];

function rangesOf(isIn: (character: string) => boolean): readonly Range[] {
  const ranges: [number, number][] = [];
  for (let code = 0; code <= LAST; code += 1) {
    const last = ranges.at(-1);
    if (!isIn(String.fromCodePoint(code))) continue;
    if (last?.[1] === code - 1) last[1] = code;
    else ranges.push([code, code]);
  }
  return ranges;
}

const A_LINE = 6;

function tableOf(name: string, what: string, ranges: readonly Range[]): string {
  const rows = ranges.map(([first, last]) => `{0x${first.toString(16)}, 0x${last.toString(16)}}`);
  const lines = Array.from(
    { length: Math.ceil(rows.length / A_LINE) },
    (_, at) => `    ${rows.slice(at * A_LINE, (at + 1) * A_LINE).join(", ")},\n`,
  );
  return `/* ${what} */\nstatic const struct range ${name}[] = {\n${lines.join("")}};\n`;
}

function header(): string {
  // Alone a mark stands on no letter, so that this is the table without the rule about stacked marks.
  const hidden = rangesOf((character) => harmlessLine(character) !== character);
  const marks = rangesOf((character) => /\p{M}/u.test(character));
  return [
    `/* Ranges of Unicode ${UNICODE}. From UNSEEN in api/cli/terminal/terminal.ts, which gives the reasons. Written again by\n   'npx vitest run --config test/vitest.config.ts test/unit/shim/front-unseen.test.ts -u'. */\n`,
    "#ifndef SUBSTRATE_CLIENT_UNSEEN_H\n#define SUBSTRATE_CLIENT_UNSEEN_H\n\n",
    "/* A range of code points, both ends included. */\nstruct range {\n  unsigned first, last;\n};\n\n",
    tableOf("UNSEEN", "Characters that are shown as numbers.", hidden),
    "\n",
    tableOf("MARKS", "Characters that are drawn on the letter before them.", marks),
    "\n#endif\n",
  ].join("");
}

const place = new FrontPlace();
afterAll(() => place.remove());

/** What the front prints of a refusal's message. */
async function shown(message: string): Promise<string> {
  const { stderr } = await place.runs(async (call) => {
    call.accept();
    await call.request();
    call.text({ type: "error", error: { code: "policy_denied", message, hint: "" } });
  });
  place.stopServing();
  return /^substrate: (.*)$/m.exec(stderr)?.[1] ?? "";
}

/** Whether Node and the table may differ: one of another Unicode has letters that the other has not. */
function mayDiffer(character: string, byFront: string): boolean {
  return process.versions.unicode !== UNICODE && (/\p{Cn}/u.test(character) || byFront.startsWith("\\"));
}

describe("the native front", () => {
  test("has the ranges of Node's regular expression", async () => {
    if (process.versions.unicode === UNICODE) await expect(header()).toMatchFileSnapshot(TABLE);
  });

  const PART = 0x4000;
  const parts = Array.from({ length: (LAST + 1) / PART }, (_, at) => at * PART);
  test("escapes every code point that Node escapes, and no other", async () => {
    const wrong: string[] = [];
    for (const from of parts) {
      const characters = Array.from({ length: PART }, (_, at) => String.fromCodePoint(from + at));
      const byFront = (await shown(characters.join("|"))).split("|");
      // The vertical line itself is one of them.
      const expected = characters.flatMap((character) => (character === "|" ? ["", ""] : [character]));
      expect(byFront).toHaveLength(expected.length);
      for (const [at, character] of expected.entries()) {
        const front = byFront[at] ?? "";
        if (front !== harmlessLine(character) && !mayDiffer(character, front))
          wrong.push(`${character.codePointAt(0)?.toString(16)}: ${front}`);
      }
    }
    expect(wrong.slice(0, 20)).toEqual([]);
  }, 120_000);

  test.each([
    `z${"\u0335".repeat(5)} a`,
    "x\ufe0f\u0301\u0301",
    "a\u0301\u0302b\u0303\u0304\u0305",
    `\u0e17\u0e35\u0e48${"\u0e48".repeat(3)}`,
    "\u{e0100}\u0488\u20dd \u17b4\ue000",
  ])("escapes marks that are stacked, as Node does: %j", async (text) => {
    expect(await shown(text)).toBe(harmlessLine(text));
  });

  test("prints names of all alphabets as they are", async () => {
    const names = "café Zoë ñandú файл Ελλάδα हिन्दी ไทย ที่นี่ 漢字 한글 עברית العربية Việt Vie\u0323\u0302t 👍";
    expect(harmlessLine(names)).toBe(names);
    expect(await shown(names)).toBe(names);
  });
});
