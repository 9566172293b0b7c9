import type { ErrorReply } from "../../../schemas/generated/types.ts";
import { type Answer, call } from "../../client/client.ts";
import { Complaint, EXIT_DENIED, EXIT_SUBSTRATE, harmlessLine, type Terminal } from "./terminal.ts";

/** Sends a GET to the operator's socket. Throws {@link Complaint} with the broker's message for any status but 200. */
export async function ask<T>(terminal: Terminal, path: string): Promise<T> {
  return successOf(await call(terminal.home.controlSocket, "GET", path));
}

/** Sends a POST to the operator's socket; throws as {@link ask} does. */
export async function tell<T>(terminal: Terminal, path: string, body: object): Promise<T> {
  return successOf(await call(terminal.home.controlSocket, "POST", path, body));
}

/** Sends a DELETE to the operator's socket; throws as {@link ask} does. */
export async function withdraw<T>(terminal: Terminal, path: string): Promise<T> {
  return successOf(await call(terminal.home.controlSocket, "DELETE", path));
}

function successOf<T>(answer: Answer): T {
  if (answer.status === 200) return answer.document as T;
  throw new Complaint(wordsOf(answer));
}

/** Takes the error from an unsuccessful answer. */
export function errorOf(answer: Answer): ErrorReply["error"] {
  return (answer.document as ErrorReply).error;
}

/** Formats an error for people: message, then hint. */
export function wordsOf(answer: Answer): string {
  const { message, hint } = errorOf(answer);
  return `${harmlessLine(message)}\n  ${harmlessLine(hint)}`;
}

/** Error codes of refusals by policy, budget or person. */
const BY_POLICY: ReadonlySet<string> = new Set([
  "policy_denied",
  "approval_required",
  "approval_denied",
  "scope_denied",
  "budget_exceeded",
]);

/** Exit code of a refused call: 126 for a refusal by policy, else 125. */
export function exitOfRefusal(answer: Answer): number {
  const { exit, code } = errorOf(answer);
  return exit ?? (BY_POLICY.has(code) ? EXIT_DENIED : EXIT_SUBSTRATE);
}
