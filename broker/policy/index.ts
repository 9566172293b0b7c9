/** The policy engine's public exports for the rest of the broker. Every export but `loadPolicy` is pure. */
export type {
  CommandAssignment,
  CommandWord,
  OpaqueSpot,
  ReadCommand,
  SimpleCommand,
} from "./words/command.ts";
export {
  type StartDecision,
  type StartFinding,
  type StartWarning,
  decideStart,
} from "./verdict/decide-start.ts";
export { type ConcernedStarts, concernedStarts } from "./rules/start-names.ts";
export { type Certainty, toldBuiltins } from "./shell/builtins.ts";
export { decide, decideAll } from "./verdict/decide.ts";
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
} from "./rules/decision.ts";
export { isHarmless } from "./rules/harmless-variables.ts";
export { setsForOthers } from "./rules/set-variables.ts";
export type { BaseFile } from "./load/load.ts";
export { identityOf } from "./load/load.ts";
export { lostDenials } from "./load/lost-denials.ts";
export { loadPolicy, MAX_POLICY_BYTES, parsePolicy } from "./load/load.ts";
export { PassedRules } from "./rules/rule-set.ts";
export { isSystemFolder } from "./rules/match.ts";
export { namesPlace, PASSED_BY_DEFAULT, passes } from "./rules/passed-variables.ts";
export { HOME_MARK } from "./words/command.ts";
export { loadsCode } from "./programs/programs.ts";
export { isKnownStart, programsOf, runsAnything } from "./rules/runner-programs.ts";
export { asksForAll, keyRule } from "./verdict/findings.ts";
export { undecidedIn } from "./verdict/decide.ts";
export { ONLY } from "./load/yaml-file.ts";
export { isReadable, readArgv, readShell, withVariables } from "./shell/read.ts";
