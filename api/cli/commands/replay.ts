import type { ReplayReply, TraceReply } from "../../../schemas/generated/types.ts";
import { type Answer, call } from "../../client/client.ts";
import { idOf } from "./changes.ts";
import { ask, exitOfRefusal, wordsOf } from "../terminal/replies.ts";
import { printReplay, printRuns } from "../words/replay-words.ts";
import { Complaint, harmlessLine, printJson, printLine, type Terminal } from "../terminal/terminal.ts";
import { stdinField } from "./stdin-field.ts";
import { allAlike } from "../words/replay-runs.ts";

export type ReplayOptions = {
  readonly policy?: string;
  readonly times?: string;
  readonly env?: readonly string[];
  readonly stdin?: boolean;
  readonly json?: boolean;
};

/** What does not match, or was not measured. */
const EXIT_DIFFERS = 1;

const MAX_TIMES = 1000;

/** Runs a recorded command once more, or several times, and says what is the same. */
export async function replaySpan(
  terminal: Terminal,
  span: string,
  words: readonly string[],
  options: ReplayOptions,
): Promise<number> {
  const times = timesOf(options.times);
  const body = await bodyOf(terminal, words, options);
  const id = await idOf(terminal, span, ({ given }) => given?.replays === undefined);
  const replies: ReplayReply[] = [];
  for (let run = 0; run < times; run += 1) {
    const path = `/v1/replay/${encodeURIComponent(id)}`;
    const answer = await call(terminal.home.controlSocket, "POST", path, body);
    if (answer.status !== 200) return await refused(terminal, id, options, answer);
    replies.push(answer.document as ReplayReply);
  }
  const alike = allAlike(replies);
  const same =
    alike && replies.every(({ matches }) => Object.values(matches).every((match) => match === true));
  if (options.json === true) {
    const document = options.times === undefined ? replies[0] : { span_id: id, times, alike, runs: replies };
    printJson(terminal, document);
  } else if (times === 1 && replies[0] !== undefined) printReplay(terminal, replies[0], options.policy);
  else printRuns(terminal, replies, alike, options.policy);
  return same ? 0 : EXIT_DIFFERS;
}

/** Under another policy the verdict is what was asked for, also when it is a no. */
async function refused(
  terminal: Terminal,
  span: string,
  { policy, json }: ReplayOptions,
  answer: Answer,
): Promise<number> {
  if (json === true) {
    printJson(terminal, answer.document);
    return exitOfRefusal(answer);
  }
  if (policy !== undefined && exitOfRefusal(answer) === 126) {
    const { span: recorded } = await ask<TraceReply>(terminal, `/v1/trace/${encodeURIComponent(span)}`);
    const then = recorded.decision?.verdict ?? "none";
    printLine(
      terminal,
      `verdict   ${then} (${recorded.policy_id ?? "-"}) → refused (${harmlessLine(policy)})`,
    );
  }
  terminal.err.write(`substrate: ${wordsOf(answer)}\n`);
  return exitOfRefusal(answer);
}

async function bodyOf(
  terminal: Terminal,
  words: readonly string[],
  { policy, env = [], stdin }: ReplayOptions,
): Promise<object> {
  const [first] = words;
  return {
    ...(policy === undefined ? {} : { policy }),
    ...(first === undefined ? {} : words.length === 1 ? { cmd: first } : { argv: words }),
    ...(env.length === 0 ? {} : { env: Object.fromEntries(env.map(variableOf)) }),
    ...(stdin === true ? { stdin_b64: "", ...(await stdinField(terminal, true)) } : {}),
  };
}

function variableOf(text: string): readonly [string, string] {
  const at = text.indexOf("=");
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)];
  throw new Complaint(`Cannot read --env: NAME=VALUE is wanted, received '${harmlessLine(text)}'`);
}

function timesOf(text: string | undefined): number {
  if (text === undefined) return 1;
  const times = Number(text);
  if (/^\d{1,4}$/.test(text) && times >= 1 && times <= MAX_TIMES) return times;
  throw new Complaint(
    `--times takes a whole number from 1 to ${MAX_TIMES}, received '${harmlessLine(text)}'`,
  );
}
