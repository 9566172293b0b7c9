/** A program at a terminal of its own, of which no output is lost. */
import { spawn } from "node-pty";

/**
 * node-pty closes a terminal 200 ms after its process has ended, read or not, and on a busy machine that is too early.
 * So a shell stays there until the program's end has been read. Its traps keep it alive through Ctrl-C, and are not
 * inherited by the program.
 */
const STAYS = `trap : INT QUIT; "$@"; printf '\\036%s\\036' "$?"; sleep 60`;

// oxlint-disable-next-line no-control-regex -- a character that no program here prints
const END = /\u001e(\d+)\u001e$/;

export type Ended = { readonly code: number; readonly text: string };

export type Typing = {
  readonly text: () => string;
  readonly type: (keys: string) => void;
};

/**
 * @param argv the program and its words.
 * @param onText called after each output; may type.
 * @param early typed before there is any output.
 * @returns the exit code (128 and the signal's number for one that a signal ended) and everything that was shown.
 */
export function runAtTerminal(
  argv: readonly string[],
  where: { readonly cwd: string; readonly env: Readonly<Record<string, string>> },
  onText: (typing: Typing) => void = () => undefined,
  early = "",
): Promise<Ended> {
  const terminal = spawn("/bin/sh", ["-c", STAYS, "sh", ...argv], {
    cwd: where.cwd,
    env: where.env,
    cols: 200,
  });
  const typing: Typing = { text: () => text, type: (keys) => terminal.write(keys) };
  let text = "";
  return new Promise((resolve, reject) => {
    let over = false;
    if (early !== "") terminal.write(early);
    terminal.onExit(() => {
      if (!over) reject(new Error(`The terminal of '${argv.join(" ")}' went away: ${text}`));
    });
    terminal.onData((data) => {
      text += data;
      const end = END.exec(text);
      if (end === null) return onText(typing);
      over = true;
      // The whole foreground, so that `sleep` goes with its shell.
      process.kill(-terminal.pid, "SIGKILL");
      resolve({ code: Number(end[1]), text: text.slice(0, end.index) });
    });
  });
}

/** Answers once, when a text is shown for the first time. */
export function whenShown(wanted: string, answer: (typing: Typing) => void): (typing: Typing) => void {
  let answered = false;
  return (typing) => {
    if (answered || !typing.text().includes(wanted)) return;
    answered = true;
    answer(typing);
  };
}
