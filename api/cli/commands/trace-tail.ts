import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { TraceTail } from "../../../broker/spans/trace-tail.ts";
import type { Span } from "../../../schemas/generated/types.ts";
import { spanLine } from "../words/span-lines.ts";
import { Complaint, harmlessJson, harmlessLine, printLine, type Terminal } from "../terminal/terminal.ts";

export type TailOptions = {
  readonly lines: string;
  readonly follow: boolean;
  readonly agent?: string;
  readonly session?: string;
  readonly json?: boolean;
};

const TAIL_MS = 200;

/** Prints the last lines, and new ones as they are written until it is interrupted. Needs no broker. */
export async function tailSpans(terminal: Terminal, options: TailOptions): Promise<number> {
  const path = terminal.home.trace;
  if (!/^\d{1,6}$/.test(options.lines))
    throw new Complaint(`Cannot show '${options.lines}' lines: a whole number up to 999999 is wanted`);
  if (!existsSync(path)) throw new Complaint(`There is no trace yet at '${path}'`);
  const tail = new TraceTail(path);
  try {
    for (const line of tail.last(Number(options.lines), (text) => isWanted(text, options)))
      print(terminal, line, options);
    while (options.follow) {
      for (const line of tail.next()) if (isWanted(line, options)) print(terminal, line, options);
      await sleep(TAIL_MS);
    }
  } finally {
    tail.close();
  }
  return 0;
}

function print(terminal: Terminal, line: string, { json }: TailOptions): void {
  const span = spanOf(line);
  if (span === undefined) printLine(terminal, harmlessLine(line));
  else printLine(terminal, json === true ? harmlessJson(line) : spanLine(terminal, span));
}

function isWanted(line: string, { agent, session }: TailOptions): boolean {
  if (agent === undefined && session === undefined) return true;
  const span = spanOf(line);
  return (
    span !== undefined &&
    (agent === undefined || span.agent_id === agent) &&
    (session === undefined || span.session_id === session)
  );
}

/** Undefined for a line that is no span, which is shown as it is. */
function spanOf(line: string): Span | undefined {
  try {
    const span = JSON.parse(line) as Partial<Span> | null;
    return typeof span?.span_id === "string" && span.cmd !== undefined ? (span as Span) : undefined;
  } catch {
    return undefined;
  }
}
