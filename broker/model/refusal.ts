import type { DecisionRule, ErrorReply } from "../../schemas/generated/types.ts";

/** The codes of the API's error table; `api/http/errors.ts` gives each its status. */
export type ErrorCode = ErrorReply["error"]["code"];

/** Why nothing ran, in the shape of the API's `error` object. A value, never thrown below `api/`. */
export type Refusal = ErrorReply["error"];

/** Whether a step was refused. Results of steps other than refusals have no `code`. */
export function isRefusal<Value extends object>(value: Value | Refusal): value is Refusal {
  return "code" in value;
}

/** A program may have arguments by the thousand, and the rule and its reason stand behind them. */
const MAX_FRAGMENT = 400;

/** Returns the beginning of what a rule matched, for sentences. */
export function shortFragment({ fragment }: DecisionRule): string {
  return fragment.length <= MAX_FRAGMENT
    ? fragment
    : `${fragment.slice(0, MAX_FRAGMENT)}… (${fragment.length} characters)`;
}

/** Ends a sentence with the rule behind it; empty without a rule. */
export function because(rule: DecisionRule | null): string {
  if (rule === null) return "";
  const reason = rule.reason === undefined ? "" : `: ${rule.reason}`;
  return `: '${shortFragment(rule)}' matches '${rule.pattern}' in ${rule.list} (${rule.source})${reason}`;
}

/** Makes a refusal from its two sentences: the problem with the received value, and the next step for the caller. */
export function refusal(
  code: ErrorCode,
  message: string,
  hint: string,
  more: Partial<Refusal> = {},
): Refusal {
  return { code, message, hint, ...more };
}

/** Refuses new work while the broker stops. */
export function stopping(): Refusal {
  return refusal("busy", "The broker is stopping", "Try again when the broker runs again", {
    retry_after_ms: 1000,
  });
}

/** Formats an external value for messages: quoted, shortened, control characters escaped against terminals. */
export function quoted(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? String(value));
  const short = text.length > 120 ? `${text.slice(0, 117)}…` : text;
  return `'${short.replace(/[\p{Cc}\p{Cf}]/gu, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`)}'`;
}

/** Refuses an action that cannot be recorded in the trace. `instead` names the prevented action: "Nothing ran". */
export function cannotRecord(instead: string, error: unknown): Refusal {
  const why = error instanceof Error ? error.message : String(error);
  return refusal(
    "busy",
    `${instead}: its span cannot be recorded (${why})`,
    "Free space where SUBSTRATE_HOME lies, then try again",
  );
}
