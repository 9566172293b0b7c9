import { existsSync } from "node:fs";
import { SpanIndex } from "../../../broker/spans/span-index.ts";
import { verifyTrace } from "../../../broker/spans/verify.ts";
import { Complaint, printJson, printLine, type Terminal } from "../terminal.ts";

/** Checks the trace against itself, the database's head and a head that was kept elsewhere. Exit 1 when it does not hold. */
export async function verify(terminal: Terminal, head: string | undefined, json: boolean): Promise<number> {
  const { trace, database } = terminal.home;
  if (!existsSync(trace)) throw new Complaint(`There is no trace at '${trace}'`);
  const index = new SpanIndex(database, { readOnly: true });
  const known = index.watermark()?.head;
  const lost = index.lostHeads();
  await index.close();
  const kept = [...(known === undefined ? [] : [known]), ...lost, ...(head === undefined ? [] : [head])];
  const result = await verifyTrace(trace, kept);
  if (json) printJson(terminal, result);
  else if (result.ok) printLine(terminal, `The trace holds: ${result.lines} lines, head ${result.head}`);
  else printLine(terminal, `The trace does not hold at line ${result.line}: ${result.wrong}`);
  return result.ok ? 0 : 1;
}
