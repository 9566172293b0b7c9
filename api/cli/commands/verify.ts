import { existsSync } from "node:fs";
import { join } from "node:path";
import { DatabaseRefused, refusedIfDamaged } from "../../../broker/spans/database-file.ts";
import { SpanIndex } from "../../../broker/spans/span-index.ts";
import { rotatedParts } from "../../../broker/spans/trace-parts.ts";
import { type Verification, verifyTrace } from "../../../broker/spans/verify.ts";
import { Complaint, printJson, printLine, type Terminal } from "../terminal/terminal.ts";

/** Checks the trace against itself, the database's head and a head that was kept elsewhere. Exit 1 when it does not hold. */
export async function verify(terminal: Terminal, head: string | undefined, json: boolean): Promise<number> {
  const { trace, database } = terminal.home;
  if (head !== undefined && !/^sha256:[0-9a-f]{64}$/.test(head))
    throw new Complaint(`Cannot use '${head}' as --head: it must be 'sha256:' and 64 hexadecimal digits`);
  const { heads: known, unknown } = await knownHeads(database);
  // Killed while it began a new file, a broker leaves none that is live, and all the others. None at all although lines are
  // known is a trace that was removed.
  if (!existsSync(trace) && rotatedParts(trace).length === 0 && known.length === 0)
    throw new Complaint(`Cannot find a trace at '${trace}'`);
  const tell = progressOn(terminal);
  const heads = [...known, ...(head === undefined ? [] : [head])];
  const result = await verifyTrace(trace, heads, tell);
  tell(undefined);
  if (json) printJson(terminal, { ...result, heads_compared: heads.length });
  else for (const line of wordsOf(result, heads.length > 0 ? undefined : unknown)) printLine(terminal, line);
  return result.ok ? 0 : 1;
}

/** `unknown`: why the database has no heads, for the sentence about a trace whose end was compared with nothing. */
type KnownHeads = { readonly heads: readonly string[]; readonly unknown: string };

const NO_HEAD = "no database here knows the last head";

async function knownHeads(database: string): Promise<KnownHeads> {
  if (!existsSync(join(database, "data.mdb"))) return { heads: [], unknown: NO_HEAD };
  try {
    return { heads: await readHeads(database), unknown: NO_HEAD };
  } catch (error) {
    const refused = refusedIfDamaged(database, error);
    if (!(refused instanceof DatabaseRefused)) throw error;
    return { heads: [], unknown: `the database with the last head, in '${database}', is damaged` };
  }
}

async function readHeads(database: string): Promise<readonly string[]> {
  const index = new SpanIndex(database, { readOnly: true });
  try {
    const { head, lostHeads } = index.state;
    return [...(head === undefined || head.hash === null ? [] : [head.hash]), ...lostHeads];
  } finally {
    await index.close();
  }
}

/** @param notCompared why the end was compared with no head. */
function wordsOf(result: Verification, notCompared: string | undefined): readonly string[] {
  if (!result.ok) {
    const { file, line, offset, seq, wrong } = result;
    return [
      `The trace is broken at line ${line}: ${wrong}`,
      `  file      ${file}, byte ${offset}, where span ${seq} was expected`,
    ];
  }
  const { lines, files, head, dropped, torn } = result;
  return [
    `The trace is intact: ${lines} lines, head ${head}`,
    ...(files > 1 ? [`  files     ${files}`] : []),
    ...(dropped === null
      ? []
      : [
          `  begins    after span ${dropped.last_seq}: ${dropped.lines} earlier lines were dropped for their ${dropped.reason}, the last with ${dropped.last_hash}`,
        ]),
    ...(notCompared === undefined
      ? []
      : [
          `  end       not compared: ${notCompared}, so a cut end would not be seen; '--head HASH' compares with your own copy`,
        ]),
    ...(torn === 0
      ? []
      : [`  torn      ${torn} bytes at the end are an unfinished line, on which nothing was run`]),
  ];
}

/** On a terminal only, and gone when it is done; `undefined` ends it. */
function progressOn({ err }: Terminal): (lines: number | undefined) => void {
  let shown = false;
  let at = Date.now();
  return (lines) => {
    if (lines === undefined && shown) err.write("\r\u001b[K");
    if (lines === undefined || !err.isTTY || Date.now() - at < 500) return;
    at = Date.now();
    shown = true;
    err.write(`\r${lines} lines checked`);
  };
}
