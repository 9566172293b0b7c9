import { checkLine, EMPTY_HEAD, type Head } from "./chain.ts";
import { readLines } from "./lines.ts";

export type Verification =
  | { readonly ok: true; readonly lines: number; readonly head: string | null }
  | { readonly ok: false; readonly line: number; readonly wrong: string };

/**
 * Checks the whole chain of a trace file, and that it still holds each known head (the broker's own copy in the
 * database, or one that a person kept elsewhere): a cut at the end breaks no chain, it only loses heads.
 */
export async function verifyTrace(path: string, known: readonly (Head | string)[]): Promise<Verification> {
  const missing = new Set<string | null>(known.map((head) => (typeof head === "string" ? head : head.hash)));
  missing.delete(null);
  let head = EMPTY_HEAD;
  let lines = 0;
  for await (const { text } of readLines(path)) {
    const checked = checkLine(text, head);
    lines += 1;
    if ("wrong" in checked) return { ok: false, line: lines, wrong: checked.wrong };
    head = checked.head;
    missing.delete(head.hash);
  }
  const [lost] = missing;
  if (lost === undefined) return { ok: true, lines, head: head.hash };
  return {
    ok: false,
    line: lines + 1,
    wrong: `the trace ends before the known head ${lost}: its end was cut`,
  };
}
