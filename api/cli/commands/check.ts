import { checkLines, type LineStyle } from "../../../broker/journey/check-lines.ts";
import type { CheckReply } from "../../../schemas/generated/types.ts";
import { call } from "../../client/client.ts";
import { coloursFor, paintVerdict } from "../words/colours.ts";
import { exitOfRefusal, wordsOf } from "../terminal/replies.ts";
import { printRows } from "../terminal/rows.ts";
import { EXIT_DENIED, harmless, printJson, type Terminal } from "../terminal/terminal.ts";
import { type CommandOptions, commandBody, commandSocket } from "./command-body.ts";

/** Prints the verdict with its fragment and rule. Exit 0 when the command would run, 126 when not. */
export async function checkCommand(
  terminal: Terminal,
  words: readonly string[],
  options: CommandOptions & { json?: boolean },
): Promise<number> {
  const answer = await call(
    commandSocket(terminal, options),
    "POST",
    "/v1/check",
    commandBody(terminal, words, options),
  );
  if (answer.status !== 200) {
    terminal.err.write(`substrate: ${wordsOf(answer)}\n`);
    return exitOfRefusal(answer);
  }
  const reply = answer.document as CheckReply;
  if (options.json === true) printJson(terminal, reply);
  else for (const line of checkLines(reply, styleFor(terminal))) printRows(terminal, line);
  return ["deny", "ask"].includes(reply.decision.verdict) ? EXIT_DENIED : 0;
}

function styleFor(terminal: Terminal): LineStyle {
  const colours = coloursFor(terminal);
  return {
    verdict: (verdict) => paintVerdict(colours, verdict),
    fragment: (fragment) => colours.bold(harmless(fragment)),
    text: harmless,
  };
}
