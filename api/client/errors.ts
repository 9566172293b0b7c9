import type { ErrorBody, ErrorReply } from "../../schemas/generated/types.ts";
import { ERRORS } from "../http/errors.ts";
import { type Answer, NoBroker, Sandboxed } from "./client.ts";

/** The broker's codes, and those of a call that no broker answered. */
export type SubstrateErrorCode = ErrorBody["code"] | "no_broker" | "sandboxed" | "disconnected";

/** A call that the broker refused, or that did not reach the broker. An abort rejects with the signal's reason instead. */
export class SubstrateError extends Error {
  override readonly name = "SubstrateError";
  readonly code: SubstrateErrorCode;
  /** HTTP status; 0 without an answer. */
  readonly status: number;
  /** What to do next. */
  readonly hint: string;
  /** The whole error, with span, rule, approval and budget where they apply; undefined without an answer. */
  readonly details: ErrorBody | undefined;

  constructor(
    code: SubstrateErrorCode,
    status: number,
    message: string,
    hint: string,
    options: { readonly details?: ErrorBody; readonly cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.status = status;
    this.hint = hint;
    this.details = options.details;
  }
}

/** The error of an answer that is not 200. */
export function refusalOf({ document }: Answer): SubstrateError {
  const { error } = document as ErrorReply;
  // The error message of a stream has no status of its own. A newer broker may have codes that are unknown here.
  const status = (ERRORS as Partial<typeof ERRORS>)[error.code]?.status ?? 400;
  return new SubstrateError(error.code, status, error.message, error.hint, { details: error });
}

/** The error of a call without an answer: the signal's reason after an abort. */
export function failureOf(error: unknown, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted === true) return signal.reason;
  if (!(error instanceof Error)) return error;
  if (error instanceof NoBroker) return unanswered("no_broker", error, "Start it: substrate broker start");
  if (error instanceof Sandboxed)
    return unanswered("sandboxed", error, "Allow connections to the broker's socket in that sandbox");
  return unanswered("disconnected", error, "'substrate broker logs' shows the broker's last messages");
}

function unanswered(code: SubstrateErrorCode, cause: Error, hint: string): SubstrateError {
  return new SubstrateError(code, 0, cause.message, hint, { cause });
}
