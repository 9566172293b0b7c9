/** Extracts a replay's input from a span, or reports exactly what is missing. Pure. */
import type { ExecuteRequest, ReplayContext, ReplayRequest, Span } from "../../schemas/generated/types.ts";
import { type Refusal, refusal } from "../model/refusal.ts";
import { redact, redactWords, secretsIn } from "../secrets/redact.ts";
import { CONTEXT_PLACES, localeOf } from "../spans/replay-context.ts";

type Command = Pick<ExecuteRequest, "cmd" | "argv" | "shell">;
type Given = NonNullable<Span["given"]>;

/** A command ready for a replay. */
export type Recorded = {
  readonly span: Span;
  readonly context: ReplayContext;
  readonly given: Given;
  readonly agent: string;
  readonly cwd: string;
  readonly command: Command;
  readonly env: ExecuteRequest["env"];
  readonly stdin: string | undefined;
};

/** Combines a span and the parts supplied by the replay's caller. */
export function recordedOf(span: Span, supplied: ReplayRequest): Recorded | Refusal {
  const { replay_context: context, given, agent_id: agent, cwd } = span;
  const reason = noCommand(span);
  if (reason !== undefined) return notReplayable(span, [reason]);
  if (context === null || agent === null || cwd === null || given === undefined) {
    return notReplayable(span, ["an earlier version recorded it, without the form of its command"]);
  }
  const command = commandOf(span, given, supplied);
  const missing = [
    ...(typeof command === "string" ? [command] : []),
    ...notSupplied(given, supplied),
    ...replacedContext(span, supplied),
    ...(given.keeps_background === true ? ["it kept processes running in the world of its session"] : []),
    ...(given.file_call === true ? ["it is a file operation, whose content was not kept"] : []),
    ...(given.own_home === true ? ["it had a home of its own, whose content was not kept"] : []),
  ];
  if (missing.length > 0 || typeof command === "string") return notReplayable(span, missing);
  return { span, context, given, agent, cwd, command, env: supplied.env, stdin: supplied.stdin_b64 };
}

/** Returns why the span has no result to compare; undefined for a command that ran to its end. */
function noCommand({ event_type: type, outcome, code }: Span): string | undefined {
  if (type === "command_start") return "its command is still running";
  if (type !== "command_complete" && code !== undefined && code !== null)
    return `its command never ran (${code})`;
  if (type !== "command_complete") return `it does not record a command (${type})`;
  if (outcome === "lost") return "its end is unknown: its world or the broker was lost";
  if (outcome === "failed") return `its command could not be started (${code ?? "unknown"})`;
  if (outcome === "cancelled") return "its client disconnected, so it was ended early";
  return undefined;
}

/** Returns the command; for a redacted or cut command, the caller must supply the original, checked against the recorded text. */
function commandOf(span: Span, given: Given, { cmd, argv, env = {} }: ReplayRequest): Command | string {
  const shell = given.form === "argv" ? {} : { shell: given.form };
  if (cmd !== undefined || argv !== undefined) {
    const known = secretsIn(env);
    const { text } = argv === undefined ? redact(cmd ?? "", "cmd", known) : redactWords(argv, "cmd", known);
    if ((argv === undefined) === (given.form === "argv"))
      return `its command was given as ${given.form === "argv" ? "'argv'" : "'cmd'"}, and you sent the other form`;
    if (text !== span.cmd) return "the command that you sent is not the recorded one";
    return argv === undefined ? { cmd: cmd ?? "", ...shell } : { argv };
  }
  const replaced = span.redacted.filter(({ place }) => place === "cmd");
  if (replaced.length > 0) {
    const kinds = [...new Set(replaced.map(({ kind }) => kind))].join(", ");
    return `its command was not kept unchanged (${kinds}): send it as '${given.form === "argv" ? "argv" : "cmd"}'`;
  }
  const recorded = span.cmd ?? "";
  return given.form === "argv" ? wordsOf(recorded) : { cmd: recorded, ...shell };
}

function wordsOf(text: string): Command | string {
  const words: unknown = JSON.parse(text);
  return Array.isArray(words) && words.length > 0 && words.every((word) => typeof word === "string")
    ? { argv: words as unknown as NonNullable<Command["argv"]> }
    : "its command is not a list of words";
}

const HOW_TO_SUPPLY = {
  env: { field: "env", words: "its variables were not kept: send them as 'env'" },
  stdin: { field: "stdin_b64", words: "its input was not kept: send it as 'stdin_b64'" },
} as const;

function notSupplied({ not_kept: missing = [] }: Given, supplied: ReplayRequest): readonly string[] {
  return missing.flatMap((part) => {
    if (part === "scope_token") return ["it used a scope_token, which is valid for one command only"];
    const { field, words } = HOW_TO_SUPPLY[part];
    return supplied[field] === undefined ? [words] : [];
  });
}

/** A PATH or locale resembling a credential is not recorded in the span. */
function replacedContext({ redacted }: Span, { env = {} }: ReplayRequest): readonly string[] {
  const isReplaced = (wanted: string): boolean => redacted.some(({ place }) => place === wanted);
  const noPath = isReplaced(CONTEXT_PLACES.path) && env["PATH"] === undefined;
  const noLocale = isReplaced(CONTEXT_PLACES.locale) && localeOf(env) === null;
  return [
    ...(noPath ? ["its PATH was not kept unchanged: send it in 'env'"] : []),
    ...(noLocale ? ["its locale was not kept unchanged: send LANG or LC_ALL in 'env'"] : []),
  ];
}

export function notReplayable(span: Span, reasons: readonly string[]): Refusal {
  return refusal(
    "not_replayable",
    `Span ${span.span_id} cannot be replayed: ${reasons.join("; ")}`,
    "Send the missing parts with the replay if possible, or run the command again with POST /v1/execute",
  );
}
