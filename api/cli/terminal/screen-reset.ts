/** Resets a terminal that a program's output has changed. The same in the native front (shim/client/terminal.c). */
import { toLineBegin } from "./line-editing.ts";
import type { Terminal } from "./terminal.ts";

/** Scroll margins, origin, colours and charset, wrapping, the cursor, locked keys, inserting, new lines, echo, reverse video. */
const RESET_PICTURE =
  "\x1b7\x1b[?69l\x1b[r\x1b8\x1b[!p\x1b[0m\x1b(B\x0f\x1b[?7h\x1b[?25h\x1b[2;4;20l\x1b[12h\x1b[?5l";

const RESET_STYLE = "\x1b[0m";

/** Palette and colours of text. */
const RESET_COLOURS = "\x1b]104\x07\x1b]105\x07\x1b]110\x07\x1b]111\x07\x1b]112\x07";

/** The main screen, with the cursor where it was before the other one. */
const LEAVE_SCREEN = "\x1b[?1049l";

/** For a terminal that may show the main screen already: tmux puts the cursor back on 1049 then too, where the last program left it. */
const MAIN_SCREEN = "\x1b[?1047l";

/** Cursor keys and keypad, mouse and focus reports, pastes, withheld output. */
const RESET_INPUT =
  "\x1b[?1l\x1b>\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1006l\x1b[?1015l\x1b[?1016l\x1b[?2004l\x1b[?2026l";

/** Keys as kitty and xterm report them. */
const RESET_KEYS = "\x1b[<99u\x1b[>4;0m";

/** In Latin-1, as all below: terminals also take the controls of C1 in UTF-8. */
// oxlint-disable-next-line no-control-regex -- escape sequences are what is looked for
const ESCAPE = /\x1b|\xc2[\x80-\x9f]/;
/** All but sequences for the style of text, or that erase a line's rest. */
// oxlint-disable-next-line no-control-regex -- as above
const PICTURE = /(?:\x1b(?!\[)|\xc2(?!\x9b)[\x80-\x9f]|(?:\x1b\[|\xc2\x9b)(?![\d:;]*[mK])).?/s;
// oxlint-disable-next-line no-control-regex -- as above
const MODES = /(?:\x1b\[|\xc2\x9b)\?|\x1b[=c]/;
/** Sets private modes, some of which select a screen, the other one by `h`; or resets the terminal. */
// oxlint-disable-next-line no-control-regex -- as above
const SET_MODES = /(?:\x1b\[|\xc2\x9b)\?([\d;]*)([hl])|\x1bc/g;
const SCREENS: ReadonlySet<number> = new Set([47, 1047, 1049]);
/** All commands of the system but titles, folders, links, marks of a shell, notes and the clipboard. */
// oxlint-disable-next-line no-control-regex -- as above
const COLOURS = /(?:\x1b\]|\xc2\x9d)(?!(?:[012789]|52|133);|(?:[012789]|52?|13{0,2})?$)/;
// oxlint-disable-next-line no-control-regex -- as above
const KEYS = /(?:\x1b\[|\xc2\x9b)[<>=]/;
/** Terminals skip controls inside a sequence. */
// oxlint-disable-next-line no-control-regex -- as above
const HIDDEN = /(?:\x1b[[\]]?|\xc2[\x9b\x9d])[\0-\x1a\x1c-\x1f\x7f]/;

/** A sequence may come in parts. */
const LONGEST = 16;

/** What the output of one program has changed. */
export class ScreenState {
  #hasStyle = false;
  #hasPicture = false;
  #hasModes = false;
  #hasColours = false;
  #hasKeys = false;
  #isOnOtherScreen = false;
  #tail = "";

  /** Looks at output that is about to be printed. */
  seen(bytes: Buffer): void {
    const text = this.#tail + bytes.toString("latin1");
    this.#tail = text.slice(-LONGEST);
    if (!ESCAPE.test(text)) return;
    const hides = HIDDEN.test(text);
    this.#hasStyle = true;
    this.#hasPicture ||= PICTURE.test(text);
    this.#hasModes ||= hides || MODES.test(text);
    for (const [, modes, end] of text.matchAll(SET_MODES))
      if (modes === undefined || modes.split(";").some((mode) => SCREENS.has(Number(mode))))
        this.#isOnOtherScreen = end === "h";
    this.#hasColours ||= hides || COLOURS.test(text);
    this.#hasKeys ||= hides || KEYS.test(text);
  }

  /** Makes what is printed next, as a question, seen as it is. The program's screen stays. */
  forQuestion(): string {
    return `${this.#hasPicture ? RESET_PICTURE : this.#hasStyle ? RESET_STYLE : ""}${this.coloursAgain()}`;
  }

  /** After the output of a command that had pipes: only its colours of text could hide a later question. */
  coloursAgain(): string {
    const colours = this.#hasColours ? RESET_COLOURS : "";
    this.#hasColours = false;
    return colours;
  }

  /** Gives the terminal back to the shell. */
  forShell(): string {
    const main = this.#isOnOtherScreen ? LEAVE_SCREEN : MAIN_SCREEN;
    const [screen, input] = this.#hasModes ? [main, RESET_INPUT] : ["", ""];
    const all = `${screen}${this.forQuestion()}${input}${this.#hasKeys ? RESET_KEYS : ""}`;
    this.#hasStyle = this.#hasPicture = this.#hasModes = this.#hasKeys = this.#isOnOtherScreen = false;
    return all;
  }
}

/** Begins a line for a question, seen as it is, with nothing below it: output of an earlier command may have hidden text. */
export function questionBegin({ err, environment }: Terminal): string {
  return err.isTTY && environment["TERM"] !== "dumb"
    ? `${RESET_PICTURE}${toLineBegin(err.columns)}\x1b[J`
    : "";
}
