import type { ErrorReply } from "../../../schemas/generated/types.ts";
import { type Answer, call } from "../../client/client.ts";
import { Complaint, EXIT_DENIED, EXIT_SUBSTRATE, harmlessLine, type Terminal } from "./terminal.ts";

/** Asks the operator's socket and expects success. Throws {@link Complaint} with the broker's own words otherwise. */
export async function ask<T>(terminal: Terminal, path: string): Promise<T> {
  return successOf(await call(terminal.home.controlSocket, "GET", path));
}

/** Tells the operator's socket to do something, and expects success as {@link ask} does. */
export async function tell<T>(terminal: Terminal, path: string, body: object): Promise<T> {
  return successOf(await call(terminal.home.controlSocket, "POST", path, body));
}

/** Takes something back on the operator's socket, and expects success as {@link ask} does. */
export async function withdraw<T>(terminal: Terminal, path: string): Promise<T> {
  return successOf(await call(terminal.home.controlSocket, "DELETE", path));
}

function successOf<T>(answer: Answer): T {
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
  return `${harmlessLine(message)}\n  ${harmlessLine(hint)}`;
}

/** Codes that say that a policy, a budget or a person said no. */
const BY_POLICY: ReadonlySet<string> = new Set([
  "policy_denied",
  "approval_required",
  "approval_denied",
  "scope_denied",
  "budget_exceeded",
]);

/** Exit code for a call that was refused: 126 when a policy said no, 125 for everything else. */
export function exitOfRefusal(answer: Answer): number {
  const { exit, code } = errorOf(answer);
  return exit ?? (BY_POLICY.has(code) ? EXIT_DENIED : EXIT_SUBSTRATE);
}
