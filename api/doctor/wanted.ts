import { existsSync, readdirSync } from "node:fs";
import type { Home } from "../../broker/settings/home.ts";
import { readTrace } from "../../broker/spans/trace-parts.ts";
import type { Span } from "../../schemas/generated/types.ts";
import { claimedBy } from "../serve/claim.ts";

/**
 * Which layers somebody may still want: held changes, those of a command that runs or begins, and of a running broker's
 * worlds. Nobody can the others: their command or world was lost with its broker, or its changes are not held. Without a
 * trace that could tell, all are wanted.
 */
export async function wantedLayers(home: Home): Promise<(layers: string) => boolean> {
  const there = existsSync(home.overlay) ? readdirSync(home.overlay) : [];
  if (there.length === 0 || !existsSync(home.trace)) return () => true;
  // Layers are made before the line of their command is written: while a broker runs, those without one are its own.
  const running = claimedBy(home.startLock) !== undefined;
  const wanted = new Map(there.map((layers) => [layers, running] as const));
  for await (const text of readTrace(home.trace)) {
    const span = spanOf(text);
    if (span !== undefined && wanted.has(span.span_id)) wanted.set(span.span_id, isWanted(span, running));
  }
  return (layers) => wanted.get(layers) ?? true;
}

/** The last line of a span decides. */
function isWanted(span: Span, running: boolean): boolean {
  return span.event_type === "command_start" ? running : span.fs_diff?.held === true;
}

function spanOf(text: string): Span | undefined {
  try {
    return JSON.parse(text) as Span;
  } catch {
    // A line that was cut or edited tells nothing; `trace verify` names it.
    return undefined;
  }
}
