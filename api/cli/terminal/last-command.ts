/** Resolves `last` where a verb takes a command's span. */
import { relative } from "node:path";
import type { Span, SpansReply } from "../../../schemas/generated/types.ts";
import { commandWords } from "../words/program-words.ts";
import { ask } from "./replies.ts";
import { Complaint, harmlessLine, type Terminal } from "./terminal.ts";

/** As many spans are looked through. */
const LOOKED_THROUGH = 1000;

/**
 * Returns an id as given, and for `last` that of the newest command in this folder, below it or above it, which a line on standard
 * error then names.
 */
export async function idOf(
  terminal: Terminal,
  id: string,
  isWanted: (span: Span) => boolean = () => true,
): Promise<string> {
  if (id !== "last") return id;
  const { spans } = await ask<SpansReply>(terminal, `/v1/spans?limit=${LOOKED_THROUGH}`);
  const found = spans.find((span) => isCommand(span) && isHere(terminal, span) && isWanted(span));
  if (found === undefined)
    throw new Complaint(
      `Cannot find 'last': none of the last ${LOOKED_THROUGH} spans is a command in '${terminal.cwd}'. Name a span: 'substrate trace list' shows them`,
    );
  terminal.err.write(`substrate: ${found.span_id}  ${harmlessLine(commandWords(found.cmd ?? ""))}\n`);
  return found.span_id;
}

function isCommand({ event_type: type }: Span): boolean {
  return type === "command_complete" || type === "command_start";
}

function isHere({ cwd: here }: Terminal, { cwd }: Span): boolean {
  return cwd !== null && [relative(here, cwd), relative(cwd, here)].some((path) => !leadsOut(path));
}

/** Whether a relative path begins above its start. */
export function leadsOut(path: string): boolean {
  return path === ".." || path.startsWith("../");
}
