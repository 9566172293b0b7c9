/** A command whose result a model reads: shared by the adapters of agent frameworks. */
import type { CallOptions } from "./calls.ts";
import { SubstrateError } from "./errors.ts";
import type { ExecuteOptions, ExecuteResult, Substrate } from "./index.ts";

export type ToldResult = {
  readonly exitCode: number;
  readonly stdout: string;
  /** With a line for what was refused, held or cut inside the command. */
  readonly stderr: string;
  readonly timedOut: boolean;
  /** Span of the command, or of the refusal. */
  readonly spanId: string | undefined;
};

/** Sentences for the description of a tool. */
export const ABOUT =
  "Runs a shell command in the project's folder, in an isolated environment with a policy. A command that the policy refuses answers with exit code 126 and says why and what to do instead.";

/**
 * Runs a command. A refusal by policy, budget or person is a result with exit code 126, because a model can go another way; every
 * other failure throws {@link SubstrateError}.
 */
export async function runForModel(
  substrate: Substrate,
  request: ExecuteOptions,
  options?: CallOptions,
): Promise<ToldResult> {
  try {
    return toldOf(await substrate.execute(request, options));
  } catch (error) {
    if (!(error instanceof SubstrateError) || ![403, 409, 429].includes(error.status)) throw error;
    const { details, message, hint } = error;
    return {
      exitCode: details?.exit ?? 126,
      stdout: "",
      stderr: `${message}\n${hint}\n`,
      timedOut: false,
      spanId: details?.span_id,
    };
  }
}

function toldOf({
  exit,
  stdout,
  stderr,
  timed_out,
  span_id,
  notices,
  truncated,
  hint,
}: ExecuteResult): ToldResult {
  const lines = [
    ...notices.map(({ message }) => message),
    ...(truncated ? ["The middle of the output is missing: it was too long"] : []),
    ...(hint === null ? [] : [hint]),
  ];
  const told = lines.map((line) => `substrate: ${line}\n`).join("");
  const gap = told === "" || stderr === "" || stderr.endsWith("\n") ? "" : "\n";
  return { exitCode: exit, stdout, stderr: `${stderr}${gap}${told}`, timedOut: timed_out, spanId: span_id };
}
