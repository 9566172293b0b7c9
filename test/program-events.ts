/** What a world tells of programs, for tests that make it up. */
import type { ProgramEvent } from "../world/model/programs.ts";

export type { Span } from "../schemas/generated/types.ts";
export { validateSpan } from "../schemas/generated/validators.js";

/** 2026-01-31T12:00:00Z, in nanoseconds. */
export const NOW = 1_769_860_800_000_000_000n;

type Started = Extract<ProgramEvent, { kind: "started" }>;
type Ended = Extract<ProgramEvent, { kind: "ended" }>;

export function started(number: number, parent: number, argv: readonly string[], cut = false): Started {
  const path = `/usr/bin/${argv[0] ?? ""}`;
  return { kind: "started", number, parent, pid: 10 + number, path, argv, cut, at: NOW };
}

export function refused(parent: number, argv: readonly string[]): ProgramEvent {
  return { kind: "refused", parent, pid: 99, path: `/usr/bin/${argv[0] ?? ""}`, argv, cut: false, at: NOW };
}

export function ended(
  number: number,
  how: Partial<Pick<Ended, "code" | "signal" | "replaced">> & { readonly after?: bigint },
): Ended {
  const { code = null, signal = null, replaced = false, after = 1_000_000n } = how;
  return { kind: "ended", number, at: NOW + after, code, signal, replaced };
}
