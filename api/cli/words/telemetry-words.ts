/** Formats programs' own telemetry for `trace SPAN`. */
import type { Span, SpanTelemetry } from "../../../schemas/generated/types.ts";
import { harmlessLine } from "../terminal/terminal.ts";

/** Maximum of shown entries of a list; `--json` has all recorded entries. */
const MAX_SHOWN = 20;

const LISTS = [
  ["exec", "programs", "started"],
  ["write", "written", "opened for writing"],
  ["connect", "connected", "dialled"],
  ["unlink", "unlinked", "removed"],
  ["rename", "renamed", "moved to"],
] as const;

export function telemetryRows({ telemetry }: Span): readonly (readonly [string, string | null])[] {
  if (telemetry === undefined) return [];
  const { state, reason } = telemetry;
  if (state === "off") return [["telemetry", `off: ${harmlessLine(reason ?? "")}`]];
  return [["telemetry", [summary(telemetry), ...lists(telemetry)].join("\n")]];
}

function summary({ reason, unlisted = 0, dropped = 0 }: SpanTelemetry): string {
  return [
    "reported by the programs themselves",
    ...(unlisted === 0 ? [] : [`${unlisted} not listed`]),
    ...(dropped === 0 ? [] : [`${dropped} dropped`]),
    ...(reason === null ? [] : [harmlessLine(reason)]),
  ].join("; ");
}

function lists(telemetry: SpanTelemetry): readonly string[] {
  return LISTS.flatMap(([kind, list, word]) => {
    const count = telemetry.counts?.[kind] ?? 0;
    const texts = telemetry[list] ?? [];
    const more = texts.length - MAX_SHOWN;
    const shown = texts.slice(0, MAX_SHOWN).map((text) => `  ${harmlessLine(text)}`);
    const rest = more > 0 ? [`  … and ${more} more: --json lists them`] : [];
    return count === 0 && texts.length === 0 ? [] : [`${word} (${count})`, ...shown, ...rest];
  });
}
