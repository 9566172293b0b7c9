/** Worlds whose programs report of themselves, and what a span says of it. */
import type { Span, SpanTelemetry } from "../../../schemas/generated/types.ts";
import type { TestBroker } from "./broker.ts";

/** A policy that listens, or does not. */
export function listening(enabled: boolean, more = ""): string {
  return `id: default\nname: Telemetry\nmode: enforce\nworld:\n  enable_preload: ${enabled}\n${more}`;
}

export type Told = SpanTelemetry & {
  readonly exit: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly span: Span;
};

/** Runs a command, and says what its span has. Throws where that has nothing. */
export async function tell(
  broker: TestBroker,
  body: string | Readonly<Record<string, unknown>>,
): Promise<Told> {
  const ran = await broker.run(body);
  const span = await broker.span(ran.span_id);
  if (span.telemetry === undefined) throw new Error(`${ran.span_id} has no telemetry: ${ran.stderr}`);
  return { ...span.telemetry, exit: ran.exit ?? -1, stdout: ran.stdout, stderr: ran.stderr, span };
}
