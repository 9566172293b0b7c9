import { existsSync, readdirSync } from "node:fs";
import type { Home } from "../../broker/home.ts";
import { readLines } from "../../broker/spans/lines.ts";
import type { Span } from "../../schemas/generated/types.ts";
import { claimedBy } from "../serve/claim.ts";

/**
 * Which layers somebody may still want: held changes, and those of a command that runs. Nobody can the others: their
 * command was lost with its broker, or its changes are not held. Where the trace cannot tell, they are wanted.
 */
export async function wantedLayers(home: Home): Promise<(layers: string) => boolean> {
  const unknown = new Set(existsSync(home.overlay) ? readdirSync(home.overlay) : []);
  const wanted = new Set<string>();
  if (unknown.size === 0 || !existsSync(home.trace)) return () => true;
  const running = claimedBy(home.startLock) !== undefined;
  for await (const { text } of readLines(home.trace)) {
    const span = spanOf(text);
    if (span === undefined || !unknown.has(span.span_id)) continue;
    if (isWanted(span, running)) wanted.add(span.span_id);
    else wanted.delete(span.span_id);
  }
  return (layers) => wanted.has(layers);
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
