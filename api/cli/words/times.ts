import { Complaint } from "../terminal/terminal.ts";

const UNITS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Parses an ISO time, or an age such as `24h` before `now`; returns an ISO time. Throws {@link Complaint}. */
export function timeBefore(text: string, now: number): string {
  const [, count, unit] = /^(\d{1,6})([mhd])$/.exec(text) ?? [];
  const factor = UNITS[unit ?? ""];
  if (count !== undefined && factor !== undefined)
    return new Date(now - Number(count) * factor).toISOString();
  const time = /^\d{4}-\d{2}-\d{2}/.test(text) ? new Date(text) : undefined;
  if (time !== undefined && !Number.isNaN(time.getTime())) return time.toISOString();
  throw new Complaint(
    `Cannot use '${text}' as --since: it must be a time such as 2026-01-31T12:00:00Z, or 90m, 24h or 7d`,
  );
}
