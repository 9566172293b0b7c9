import { describe, expect, test } from "vitest";
import { coloursFor } from "../../api/cli/words/colours.ts";
import { paintPatch, statLines } from "../../api/cli/words/patch-words.ts";
import type { Terminal } from "../../api/cli/terminal/terminal.ts";
import { filePatch } from "../../broker/held/patch.ts";

describe("a diff at a person's terminal", () => {
  const terminal = { environment: {}, out: { isTTY: true } } as unknown as Terminal;

  test.each(["\x1b]0;title\x07", "\x1b[2J", "\u202eevil", "\x9b2J", "a\rb"])(
    "shows %j and does not obey it",
    (attack) => {
      const side = { kind: "file" as const, mode: 0o644, bytes: Buffer.from(`${attack}\n`) };
      const { text } = filePatch(Buffer.from(`f${attack}`).toString("latin1"), undefined, side);
      const change = {
        path: attack,
        kind: "write",
        autorun: false,
        binary: false,
        added: 1,
        removed: 0,
      } as const;
      const colours = coloursFor(terminal);
      const shown = [
        paintPatch(colours, text),
        ...statLines(colours, { changes: [change], patch: "", truncated: false, summary: null }),
      ].join("\n");
      // Nothing but our own colours.
      const rest = shown.replace(new RegExp(`${"\x1b"}\\[[0-9;]*m`, "g"), "");
      expect(rest).not.toMatch(/[^\P{C}\n]/u);
      expect(shown).toContain(coloursFor(terminal).bold("diff --git").slice(0, 4));
    },
  );

  test("has no colours for a pipe, nor with NO_COLOR", () => {
    const pipe = { environment: {}, out: { isTTY: false } } as unknown as Terminal;
    const plain = { environment: { NO_COLOR: "1" }, out: { isTTY: true } } as unknown as Terminal;
    for (const where of [pipe, plain])
      expect(paintPatch(coloursFor(where), "@@ -1,1 +1,1 @@\n-a\n+b\n")).not.toContain("\x1b");
    expect(paintPatch(coloursFor(terminal), "@@ -1,1 +1,1 @@\n-a\n+b\n")).toContain("\x1b");
  });
});
