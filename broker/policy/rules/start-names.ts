/** Which programs' starts a policy may have something to say about, by their names. Pure. */
import { baseName } from "../words/inner.ts";
import type { Rule, RuleSet } from "./rule-set.ts";

/**
 * Names as the last part of a path; one with a `*`, which stands for any characters, is a pattern of such, or of a whole path
 * where it has a `/`. `all`: each start matters, and the names only serve to find copies.
 */
export interface ConcernedStarts {
  readonly names: readonly string[];
  readonly all: boolean;
}

/** Programs that have versions in their names, as they are installed: what has another one yet is found as the same file. */
const VERSIONED = ["pip", "python", "pypy"] as const;
const NEWEST_MINOR = 30;

/** They are many programs, by their first word where they are called by their own name. */
const MANY = ["busybox", "toybox", "coreutils"] as const;

/** They run others inside themselves (`python -m pip`, `busybox rm`), and nothing would ask about those. */
const RUN_INSIDE: readonly string[] = [...MANY, ...versionsOf("python"), ...versionsOf("pypy")];

/** Whether this program runs others inside itself. */
export function runsInside(name: string): boolean {
  return MANY.some((one) => one === name) || /^(python|pypy)[0-9.]*$/.test(name);
}

/** What several policies together concern. */
export function concernedStarts(
  policies: readonly [{ readonly starts: ConcernedStarts }, ...{ readonly starts: ConcernedStarts }[]],
): ConcernedStarts {
  const [first, ...others] = policies.map(({ starts }) => starts);
  if (first === undefined || others.length === 0) return first ?? { names: [], all: true };
  const each = [first, ...others];
  return {
    names: [...new Set(each.flatMap(({ names }) => names))],
    all: each.some(({ all }) => all),
  };
}

/** The names of one policy's rules. `asksForAll`: `approval.require`, where what the line did not name asks, whatever it is called. */
export function startsOf(
  { all: rules, count }: Pick<RuleSet, "all" | "count">,
  asksForAll: boolean,
): ConcernedStarts {
  const refusing = rules.filter(speaksOfStarts);
  const named = refusing.map(({ stages: [stage] }) => namesOf(stage?.program ?? "*", stage?.programName));
  const known = [...new Set(named.flatMap((names) => names ?? []))];
  return {
    names: known.length === 0 ? [] : [...new Set([...known, ...RUN_INSIDE])],
    all: asksForAll || count["commands.allowed"] > 0 || named.includes(null),
  };
}

/** Whether a rule can refuse, isolate, ask or warn at the start of a program; those with a `|` are about what is written. */
export function speaksOfStarts({ list, stages }: Rule): boolean {
  return list !== "commands.allowed" && list !== "approval.auto_approve" && stages.length === 1;
}

/** Null: any program may be meant. */
function namesOf(program: string, plain: string | null | undefined): readonly string[] | null {
  if (plain === null) return isPattern(program) ? [program] : null;
  if (plain === undefined || plain === "") return null;
  // Git's own commands are programs too: git-push.
  const more = plain === "git" ? ["git-*"] : [];
  return [...new Set([baseName(program), plain, ...versionsOf(plain), ...more])];
}

/** With something to know a program by, and of no folder that only the broker knows by name. */
function isPattern(program: string): boolean {
  return !program.includes("\0") && /[^*/]/.test(program);
}

function versionsOf(plain: string): readonly string[] {
  if (!VERSIONED.some((one) => one === plain)) return [];
  const minors = Array.from({ length: NEWEST_MINOR + 1 }, (_, minor) => `${plain}3.${minor}`);
  return [plain, `${plain}2`, `${plain}2.7`, `${plain}3`, ...minors];
}
