import type { ErrorReply } from "../../schemas/generated/types.ts";

/** The codes of the API's error table; `api/http/errors.ts` gives each its status. */
export type ErrorCode = ErrorReply["error"]["code"];

/** Why nothing ran, in the shape of the API's `error` object. A value, never thrown below `api/`. */
export type Refusal = ErrorReply["error"];

/** Whether a step was refused. Nothing else that a step returns has a `code`. */
export function isRefusal<Value extends object>(value: Value | Refusal): value is Refusal {
  return "code" in value;
}

/** A refusal with its two sentences: what was wanted and received, and what to do next. */
export function refusal(
  code: ErrorCode,
  message: string,
  hint: string,
  more: Partial<Refusal> = {},
): Refusal {
  return { code, message, hint, ...more };
}

/** Why nothing new begins while the broker ends. */
export function stopping(): Refusal {
  return refusal("busy", "The broker is stopping", "Try again once it runs", { retry_after_ms: 1000 });
}

/** Shows a value that came from outside: quoted, short, and with no control character that a terminal would obey. */
export function quoted(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? String(value));
  const short = text.length > 120 ? `${text.slice(0, 117)}…` : text;
  return `'${short.replace(/[\p{Cc}\p{Cf}]/gu, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`)}'`;
}

/** What has no line in the trace does not happen. `instead` says what did not: "Nothing ran". */
export function cannotRecord(instead: string, error: unknown): Refusal {
  const why = error instanceof Error ? error.message : String(error);
  return refusal(
    "busy",
    `${instead}: its span cannot be recorded (${why})`,
    "Free space where SUBSTRATE_HOME lies, then try again",
  );
}
