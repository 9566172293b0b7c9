/** The face of the policy engine: what the rest of the broker may use. Everything here but `loadPolicy` is pure. */
export type { CommandWord, OpaqueSpot, ReadCommand, SimpleCommand } from "./command.ts";
export { type StartDecision, type StartFinding, type StartWarning, decideStart } from "./decide-start.ts";
export { type ConcernedStarts, concernedStarts } from "./start-names.ts";
export { type Certainty, toldBuiltins } from "./builtins.ts";
export { decide, decideAll, decideBoth } from "./decide.ts";
export type {
  CompiledPolicy,
  Decision,
  DecisionRule,
  PlainVerdict,
  PolicyLoad,
  PolicyMode,
  PolicyProblem,
  Program,
  Verdict,
  Where,
} from "./decision.ts";
export { isHarmless } from "./harmless-variables.ts";
export type { BaseFile } from "./load.ts";
export { identityOf } from "./load.ts";
export { loadPolicy, MAX_POLICY_BYTES, parsePolicy } from "./load.ts";
export { PassedRules } from "./rule-set.ts";
export { isSystemFolder } from "./match.ts";
export { namesPlace, PASSED_BY_DEFAULT, passes } from "./passed-variables.ts";
export { HOME_MARK } from "./command.ts";
export { isKnownStart, programsOf, runsAnything } from "./runner-programs.ts";
export { undecidedIn } from "./decide.ts";
export { ONLY } from "./yaml-file.ts";
export { isReadable, readArgv, readShell, withVariables } from "./read.ts";
