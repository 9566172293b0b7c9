import type { CheckReply } from "../../../schemas/generated/types.ts";
import { call } from "../../client.ts";
import { coloursFor, paintVerdict } from "../colours.ts";
import { wordsOf } from "../replies.ts";
import { Complaint, EXIT_DENIED, harmless, printJson, printLine, type Terminal } from "../terminal.ts";
import { type CommandOptions, commandBody } from "./command-body.ts";

/** Prints the verdict with its fragment and rule. Exit 0 when the command would run, 126 when not. */
export async function checkCommand(
  terminal: Terminal,
  words: readonly string[],
  options: CommandOptions & { json?: boolean },
): Promise<number> {
  const answer = await call(
    terminal.home.agentSocket,
    "POST",
    "/v1/check",
    commandBody(terminal, words, options),
  );
  if (answer.status !== 200) throw new Complaint(wordsOf(answer));
  const reply = answer.document as CheckReply;
  if (options.json === true) printJson(terminal, reply);
  else explain(terminal, reply);
  return ["deny", "ask"].includes(reply.decision.verdict) ? EXIT_DENIED : 0;
}

function explain(terminal: Terminal, { decision, policy_id: policy }: CheckReply): void {
  const colours = coloursFor(terminal);
  const { verdict, mode, rule } = decision;
  printLine(terminal, `${paintVerdict(colours, verdict)}  policy ${policy} (${mode})`);
  if (rule === null) return printLine(terminal, "  no rule concerns this command");
  printLine(terminal, `  because  ${colours.bold(harmless(rule.fragment))}`);
  printLine(terminal, `  matches  ${harmless(rule.pattern)}   in ${rule.list}, ${rule.source}`);
  if (rule.reason !== undefined) printLine(terminal, `  reason   ${harmless(rule.reason)}`);
}
