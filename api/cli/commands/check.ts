import type { CheckReply } from "../../../schemas/generated/types.ts";
import { call } from "../../client/client.ts";
import { coloursFor, paintVerdict } from "../words/colours.ts";
import { exitOfRefusal, wordsOf } from "../terminal/replies.ts";
import { EXIT_DENIED, harmless, printJson, printLine, type Terminal } from "../terminal/terminal.ts";
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
  else {
    explain(terminal, reply);
    for (const sentence of reply.undecided ?? []) printLine(terminal, `  at run   ${harmless(sentence)}`);
  }
  return ["deny", "ask"].includes(reply.decision.verdict) ? EXIT_DENIED : 0;
}

function explain(terminal: Terminal, { decision, policy_id: policy }: CheckReply): void {
  const colours = coloursFor(terminal);
  const { verdict, mode, rule } = decision;
  const { means, next } = WORDS[verdict];
  printLine(terminal, `${paintVerdict(colours, verdict)}  policy ${policy} (${mode})`);
  printLine(terminal, `  means    ${means}`);
  if (rule === null) return printLine(terminal, "  because  no rule matches this command");
  printLine(terminal, `  because  ${colours.bold(harmless(rule.fragment))}`);
  const how = isPattern(rule.list) ? "matches" : "against";
  printLine(terminal, `  ${how}  ${harmless(rule.pattern)}   in ${rule.list}, ${rule.source}`);
  if (rule.reason !== undefined) printLine(terminal, `  reason   ${harmless(rule.reason)}`);
  if (next !== null) printLine(terminal, `  next     ${next}`);
}

/** The lists whose entries are patterns of commands; the others are settings that hold for any command. */
function isPattern(list: string): boolean {
  return /^commands\.(denied|ask|isolated|warn|allowed)$|^approval\.auto_approve$/.test(list);
}

const OTHER_WAY =
  "do the task another way, or ask the operator to change that line; other spellings of the command get the same answer";

/** What each verdict comes to, for whoever has never seen a policy. */
const WORDS: Readonly<
  Record<CheckReply["decision"]["verdict"], { readonly means: string; readonly next: string | null }>
> = {
  allow: { means: "the command runs", next: null },
  isolate: {
    means: "the command runs on a copy of the project; its changes are held until they are applied",
    next: "`substrate diff` shows the changes after it has run",
  },
  ask: {
    means: "a person must approve the command before any of it runs",
    next: "send it with `substrate exec`; `substrate approvals` lists what waits for approval",
  },
  deny: { means: "no part of the command runs", next: OTHER_WAY },
  would_isolate: {
    means: "the command runs, because this policy only observes; if it enforced, the changes would be held",
    next: null,
  },
  would_ask: {
    means:
      "the command runs, because this policy only observes; if it enforced, a person would have to approve the command",
    next: null,
  },
  would_deny: {
    means:
      "the command runs, because this policy only observes; if it enforced, no part of the command would run",
    next: null,
  },
};
