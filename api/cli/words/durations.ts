/** Durations on the command line. */
import { Complaint } from "../terminal/terminal.ts";

const UNITS: Readonly<Record<string, number>> = {
  "": 1,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** Longest time limit of a call. */
const LONGEST_MS = 86_400_000;

/** Parses `10m`, `90s`, `500ms`, `2h` or a plain number of milliseconds; returns milliseconds. Throws {@link Complaint}. */
export function timeLimit(text: string, option = "--timeout"): number {
  const [, count = "", unit = ""] = /^([0-9]{1,12})(|ms|s|m|h|d)$/.exec(text) ?? [];
  const value = Number(count) * (UNITS[unit] ?? 0);
  if (value >= 1 && value <= LONGEST_MS) return value;
  throw new Complaint(
    `Cannot use '${text}' as ${option}: it must be a time such as 500ms, 90s, 10m or 2h, of at most 24h. A plain number counts milliseconds${option === "--timeout" ? "; without --timeout there is no limit" : ""}`,
  );
}
