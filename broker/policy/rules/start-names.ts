/** Names of the programs whose starts a policy's rules may concern. Pure. */
import { baseName } from "../words/inner.ts";
import type { Rule, RuleSet } from "./rule-set.ts";

/**
 * A name is the last part of a path; a name with a `*` (any characters) is a pattern, with a `/` a pattern of whole paths. `all`:
 * each start matters, and the names only serve to find copies.
 */
export interface ConcernedStarts {
  readonly names: readonly string[];
  readonly all: boolean;
}

/** Programs installed with a version in the name; a version missing here is recognised as the same file. */
const VERSIONED = ["pip", "python", "pypy"] as const;
const NEWEST_MINOR = 30;

/** Multi-call programs: called by their own name, the first word chooses the program. */
const MANY = ["busybox", "toybox", "coreutils"] as const;

/**
 * Programs that run other programs in their own process (`python -m pip`, `busybox rm`), where no start of the inner program can
 * be asked about.
 */
const RUN_INSIDE: readonly string[] = [...MANY, ...versionsOf("python"), ...versionsOf("pypy")];

/** Whether a program runs others in its own process. */
export function runsInside(name: string): boolean {
  return MANY.some((one) => one === name) || /^(python|pypy)[0-9.]*$/.test(name);
}

/** Merges the starts that several policies concern. */
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

/** Returns the names in a policy's rules. `asksForAll`: `approval.require`, which asks about every program that the line did not name. */
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

/** Whether a rule can refuse, isolate, ask or warn at a program's start; rules with a `|` concern only command lines. */
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

/** Whether a name identifies a program, without a folder that only the broker can resolve. */
function isPattern(program: string): boolean {
  return !program.includes("\0") && /[^*/]/.test(program);
}

function versionsOf(plain: string): readonly string[] {
  if (!VERSIONED.some((one) => one === plain)) return [];
  const minors = Array.from({ length: NEWEST_MINOR + 1 }, (_, minor) => `${plain}3.${minor}`);
  return [plain, `${plain}2`, `${plain}2.7`, `${plain}3`, ...minors];
}
