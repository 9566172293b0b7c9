import type { ErrorReply } from "../../schemas/generated/types.ts";
import { type Answer, call } from "../client.ts";
import { Complaint, EXIT_DENIED, EXIT_SUBSTRATE, harmless, type Terminal } from "./terminal.ts";

/** Asks the operator's socket and expects success. Throws {@link Complaint} with the broker's own words otherwise. */
export async function ask<T>(terminal: Terminal, path: string): Promise<T> {
  const answer = await call(terminal.home.controlSocket, "GET", path);
  if (answer.status === 200) return answer.document as T;
  throw new Complaint(wordsOf(answer));
}

/** The error in an answer that is none of success. */
export function errorOf(answer: Answer): ErrorReply["error"] {
  return (answer.document as ErrorReply).error;
}

/** An error as a person reads it: what, and what to do next. */
export function wordsOf(answer: Answer): string {
  const { message, hint } = errorOf(answer);
  return harmless(`${message}\n  ${hint}`);
}

/** Exit code for a call that was refused: 126 when a policy said no, 125 for everything else. */
export function exitOfRefusal(answer: Answer): number {
  return errorOf(answer).exit ?? (answer.status === 403 ? EXIT_DENIED : EXIT_SUBSTRATE);
}
