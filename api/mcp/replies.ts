/** Replies as a model reads them: plain text, the result first, then how it ended. */
import type { ErrorReply, Notice } from "../../schemas/generated/types.ts";
import type { Answer } from "../client/client.ts";
import { fromCharacter, type Output, type Outputs } from "./outputs.ts";

export type Reply = { readonly text: string; readonly isError?: boolean };

/** Characters of a command's output in its own reply: the first and the last half. */
const SHOWN = 24_000;

/** Characters of another text. */
export const SHOWN_TEXT = 60_000;

export function refusalReply({ document, status }: Answer): Reply {
  const { error } = document as Partial<ErrorReply>;
  if (error === undefined) return { text: `The broker answered ${status}`, isError: true };
  const approval = error.approval_id === undefined ? "" : `\napproval: ${error.approval_id}`;
  return { text: `${error.code}: ${error.message}${approval}\nhint: ${error.hint}`, isError: true };
}

/** Notices and hint as lines. */
export function noticeLines(notices: readonly Notice[], hint: string | null): readonly string[] {
  const lines = notices.map(({ kind, message, count }) =>
    count > 1 && kind !== "held" && kind !== "world_only"
      ? `${kind}: ${message} (${count} times)`
      : `${kind}: ${message}`,
  );
  return hint === null ? lines : [...lines, `hint: ${hint}`];
}

/** The output, cut in its middle if it is long, and how to read on. */
export function outputText(output: Output, outputs: Outputs): string {
  if (output.total <= SHOWN) return output.slice(0, SHOWN).bytes.toString();
  const half = SHOWN / 2;
  const name = outputs.keep(output);
  const head = output.slice(0, half);
  const tail = fromCharacter(output.slice(output.total - half, half).bytes);
  const left = output.total - head.bytes.length - tail.length;
  const on = `[${left} bytes are left out: output(ref "${name}", offset ${head.bytes.length}) reads on]`;
  return `${head.bytes.toString()}\n${on}\n${tail.toString()}`;
}

export function shortened(text: string): string {
  if (text.length <= SHOWN_TEXT) return text;
  return `${text.slice(0, SHOWN_TEXT)}\n[${text.length - SHOWN_TEXT} more characters are left out]`;
}

/** Joins an output and lines below it. */
export function joined(output: string, lines: readonly string[]): string {
  if (lines.length === 0) return output;
  const gap = output === "" || output.endsWith("\n") ? "" : "\n";
  return `${output}${gap}${lines.join("\n")}`;
}
