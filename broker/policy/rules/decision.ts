import type { DecisionRule, PolicyDocument, PolicyMode, Verdict } from "../../../schemas/generated/types.ts";
import type { PolicyNet } from "../../network/names/entries.ts";
import type { Builtins } from "../shell/builtins.ts";
import type { Written } from "./written.ts";
import type { RuleSet } from "./rule-set.ts";
import type { ConcernedStarts } from "./start-names.ts";

export type { DecisionRule, PolicyMode, Verdict };

export type PlainVerdict = "allow" | "isolate" | "ask" | "deny";
export interface Decision {
  readonly verdict: Verdict;
  readonly mode: PolicyMode;
  /** `null` when no rule decided. */
  readonly rule: DecisionRule | null;
  /** Rules of `commands.warn` that matched: the command runs and leaves a violation span for each. */
  readonly warnings: readonly DecisionRule[];
  /** How the command runs once a person has approved it: the strictest that no answer lifts. */
  readonly approved: "allow" | "isolate";
  /** The policies (by id) that isolate it each by a rule of its own: what they deny to plain commands alone is held. */
  readonly isolatedBy: readonly string[];
  /** The policy whose rule decided: of two (`decideBoth`), the one with the stricter verdict. */
  readonly policyId: string;
  /** Each leaves a span below the command's own. */
  readonly builtins: Builtins;
}

/** Where a command would run. Absolute paths. */
export interface Where {
  readonly project: string;
  readonly home: string;
  readonly cwd: string;
  /** The program that a bare name, or an absolute path, stands for inside the world, or null. */
  readonly resolve?: (program: string) => Program | null;
  /** The variables that every command starts with, whoever calls: one that is set to the same is not changed. */
  readonly given?: Readonly<Record<string, string>>;
  /** Whether git, started in this folder, would read the settings of another repository than the project's. */
  readonly isForeignGit?: (folder: string) => boolean;
  /** Whether a path that a policy would not let be written is for the world alone to judge: it may lead elsewhere. */
  readonly leaves?: (path: string) => boolean;
}

/** The file of a program, and the one it leads to when it is a link. Absolute paths. */
export interface Program {
  readonly path: string;
  readonly real: string;
}

/** A policy that has been validated and whose rules are ready to be matched. Immutable. */
export interface CompiledPolicy {
  readonly id: string;
  readonly name: string;
  readonly mode: PolicyMode;
  readonly selectable: boolean;
  /** `sha256:` and hex, over the canonical JSON of the document. */
  readonly hash: string;
  /** File name without folders, as it stands in `rule.source`. */
  readonly source: string;
  /** With all that it starts from. */
  readonly document: PolicyDocument;
  /** Where each part of the document is written. */
  readonly at: Written["at"];
  /** What it starts from (`extends`); null for a policy that stands alone. */
  readonly base: Written | null;
  readonly rules: RuleSet;
  /** Whose starts it may have something to say about. */
  readonly starts: ConcernedStarts;
  /** `net.allowed`, its presets not yet expanded. */
  readonly net: PolicyNet;
  /** Sentences about what is written and does nothing: keys that this version does not carry out, entries that open nothing. */
  readonly notes: readonly string[];
}

/** One reason why a policy file does not load. */
export interface PolicyProblem {
  readonly file: string;
  /** From 1; 0 when the file itself could not be read. */
  readonly line: number;
  readonly column: number;
  /** The key, as `commands.denied.3`; empty for the whole file. */
  readonly path: string;
  readonly message: string;
  /** `default.yaml:12:5: commands.denyd is not a known key (did you mean denied?)` */
  readonly text: string;
}

export type PolicyLoad = { readonly ok: CompiledPolicy } | { readonly problems: readonly PolicyProblem[] };
