/** Pastes into Node's line editor, by the bytes that a terminal sends. */
import { createInterface, type Interface } from "node:readline";
import { PassThrough } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { insertText, onLines, Pastes, toLineBegin } from "../../../../api/cli/terminal/line-editing.ts";

type Editor = {
  readonly typing: Interface;
  readonly pastes: Pastes;
  readonly lines: readonly string[];
  readonly type: (...chunks: readonly (string | Buffer)[]) => Promise<void>;
};

const open: (() => void)[] = [];
afterEach(() => open.splice(0).forEach((close) => close()));

function editor(): Editor {
  const [stdin, out] = [new PassThrough(), new PassThrough()];
  const lines: string[] = [];
  const completer = (): [string[], string] => [["completed"], ""];
  const typing = createInterface({ input: stdin, output: out, terminal: true, completer });
  onLines(stdin, typing, (line) => lines.push(line));
  const pastes = new Pastes(stdin, out, typing);
  open.push(() => pastes.end());
  const type = async (...chunks: readonly (string | Buffer)[]): Promise<void> => {
    for (const chunk of chunks) {
      stdin.write(chunk);
      await sleep(5);
    }
  };
  return { typing, pastes, lines, type };
}

describe("a paste", () => {
  test("of several lines is one line that Enter ends, at the cursor's place", async () => {
    const { typing, lines, type } = editor();
    await type("ab\x1b[D", "\x1b[200~one\r\ntwo\tx\rthree\x1b[201~", "!");
    expect(lines).toEqual([]);
    expect(typing.line).toBe("aone\ntwo\tx\nthree!b");
    await type("\r");
    expect(lines).toEqual(["aone\ntwo\tx\nthree!b"]);
  });

  test("loses its control characters, also Ctrl-C, Ctrl-D and escape sequences", async () => {
    const { typing, lines, type } = editor();
    await type("\x1b[200~a\x03b\x04c\x1b[2Jd\x7fe\x9bf日é𝄞\x1b[201~");
    expect([typing.line, lines]).toEqual(["abc[2Jdef日é𝄞", []]);
  });

  test("that is cut anywhere, as a slow line does, is the same", async () => {
    const text = Buffer.from("\x1b[200~one\r日𝄞\x1b[201~");
    for (let at = 1; at < text.length; at += 1) {
      const { typing, type } = editor();
      await type(text.subarray(0, at), text.subarray(at));
      open.splice(0).forEach((close) => close());
      expect(typing.line, `cut at byte ${at}`).toBe("one\n日𝄞");
    }
  });

  test("that comes with the Enter before it stays whole, and is the next line's beginning", async () => {
    const { typing, pastes, lines, type } = editor();
    await type("first\r\x1b[200~one\rt");
    const whole: string[] = [];
    pastes.whenWhole(() => whole.push(typing.line));
    expect([lines, whole]).toEqual([["first"], []]);
    await type("wo\x1b[201~");
    expect([lines, whole]).toEqual([["first"], ["one\ntwo"]]);
    const next = editor();
    insertText(next.typing, whole.join());
    expect([next.typing.line, next.lines]).toEqual(["one\ntwo", []]);
  });

  test("is keys again once pastes are no longer taken, and the terminal has been told", async () => {
    const { pastes, lines, type } = editor();
    await type("\x1b[200~lost");
    pastes.end();
    await type("one\rtwo\r");
    expect(lines).toEqual(["one", "two"]);
  });
});

test("a line's width of blanks and a return come before a prompt of unknown place", () => {
  expect(toLineBegin(5)).toBe("     \r\x1b[K");
});
