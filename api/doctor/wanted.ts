import { existsSync, readdirSync } from "node:fs";
import type { Home } from "../../broker/settings/home.ts";
import { readTrace, spanIn } from "../../broker/spans/trace-parts.ts";
import type { Span } from "../../schemas/generated/types.ts";
import { claimedBy } from "../serve/claim.ts";

/**
 * Finds the overlay layers still in use: held changes, layers of running or starting commands, and of a running broker's worlds.
 * Other layers are left-overs: their command or world died with the broker, or the changes are not held. Without a trace, all
 * layers count as in use.
 */
export async function wantedLayers(home: Home): Promise<(layers: string) => boolean> {
  const there = existsSync(home.overlay) ? readdirSync(home.overlay) : [];
  if (there.length === 0 || !existsSync(home.trace)) return () => true;
  // The broker makes layers before writing the command's trace line: layers without a line belong to a running broker.
  const running = claimedBy(home.startLock) !== undefined;
  const wanted = new Map(there.map((layers) => [layers, running] as const));
  for await (const text of readTrace(home.trace)) {
    const span = spanIn(text);
    if (span !== undefined && wanted.has(span.span_id)) wanted.set(span.span_id, isWanted(span, running));
  }
  return (layers) => wanted.get(layers) ?? true;
}

/** Whether a span's layers are in use; the span's last line decides. */
function isWanted(span: Span, running: boolean): boolean {
  return span.event_type === "command_start" ? running : span.fs_diff?.held === true;
}
