import { existsSync } from "node:fs";
import { join } from "node:path";
import { SpanIndex } from "../../../broker/spans/span-index.ts";
import { rotatedParts } from "../../../broker/spans/trace-parts.ts";
import { type Verification, verifyTrace } from "../../../broker/spans/verify.ts";
import { Complaint, printJson, printLine, type Terminal } from "../terminal/terminal.ts";

/** Checks the trace against itself, the database's head and a head that was kept elsewhere. Exit 1 when it does not hold. */
export async function verify(terminal: Terminal, head: string | undefined, json: boolean): Promise<number> {
  const { trace, database } = terminal.home;
  if (head !== undefined && !/^sha256:[0-9a-f]{64}$/.test(head))
    throw new Complaint(`Cannot use '${head}' as --head: it must be 'sha256:' and 64 hexadecimal digits`);
  const known = await knownHeads(database);
  // Killed while it began a new file, a broker leaves none that is live, and all the others. None at all although lines are
  // known is a trace that was removed.
  if (!existsSync(trace) && rotatedParts(trace).length === 0 && known.length === 0)
    throw new Complaint(`Cannot find a trace at '${trace}'`);
  const tell = progressOn(terminal);
  const heads = [...known, ...(head === undefined ? [] : [head])];
  const result = await verifyTrace(trace, heads, tell);
  tell(undefined);
  if (json) printJson(terminal, { ...result, heads_compared: heads.length });
  else for (const line of wordsOf(result, heads.length)) printLine(terminal, line);
  return result.ok ? 0 : 1;
}

async function knownHeads(database: string): Promise<readonly string[]> {
  if (!existsSync(join(database, "data.mdb"))) return [];
  const index = new SpanIndex(database, { readOnly: true });
  try {
    const { head, lostHeads } = index.state;
    return [...(head === undefined || head.hash === null ? [] : [head.hash]), ...lostHeads];
  } finally {
    await index.close();
  }
}

function wordsOf(result: Verification, compared: number): readonly string[] {
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
    ...(compared > 0
      ? []
      : [
          "  end       not compared: no database here knows the last head, so a cut end would not be seen; '--head HASH' compares with your own copy",
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
