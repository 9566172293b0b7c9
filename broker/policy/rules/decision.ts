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
  /** Matching rules of `commands.warn`: the command runs and leaves a violation span for each rule. */
  readonly warnings: readonly DecisionRule[];
  /** How the command runs after a person's approval: the strictest verdict that an approval does not lift. */
  readonly approved: "allow" | "isolate";
  /**
   * Ids of the policies with an isolating rule of their own for the command: the names that such a policy denies only to plain
   * commands may be written, and the changes are held.
   */
  readonly isolatedBy: readonly string[];
  /** The policy of the deciding rule; of several policies, the stricter. */
  readonly policyId: string;
  /** Each builtin leaves a span below the command's own. */
  readonly builtins: Builtins;
}

/** Where a command would run. Absolute paths. */
export interface Where {
  readonly project: string;
  readonly home: string;
  readonly cwd: string;
  /** Resolves a bare name or an absolute path to the program inside the world; null if not found. */
  readonly resolve?: (program: string) => Program | null;
  /** Variables in every command's environment, whoever calls: setting a variable to the same value changes nothing. */
  readonly given?: Readonly<Record<string, string>>;
  /** Whether git, started in this folder, would read the settings of another repository than the project's. */
  readonly isForeignGit?: (folder: string) => boolean;
  /** Whether only the world can judge a write that a policy does not allow: the path may lead elsewhere. */
  readonly leaves?: (path: string) => boolean;
}

/** A program's file, and the target if the file is a link. Absolute paths. */
export interface Program {
  readonly path: string;
  readonly real: string;
}

/** A validated policy with rules compiled for matching. Immutable. */
export interface CompiledPolicy {
  readonly id: string;
  readonly name: string;
  readonly mode: PolicyMode;
  readonly selectable: boolean;
  /** `sha256:` and hex, over the canonical JSON of the document. */
  readonly hash: string;
  /** File name without folders, as in `rule.source`. */
  readonly source: string;
  /** Includes the base policy's parts. */
  readonly document: PolicyDocument;
  /** File and line of each part of the document. */
  readonly at: Written["at"];
  /** The base policy (`extends`); null without a base. */
  readonly base: Written | null;
  readonly rules: RuleSet;
  /** Program starts that the policy's rules may concern. */
  readonly starts: ConcernedStarts;
  /** `net.allowed`, presets not yet expanded. */
  readonly net: PolicyNet;
  /** Sentences about parts of the policy without effect: keys that this version does not carry out, entries that open nothing. */
  readonly notes: readonly string[];
}

/** A reason why a policy file does not load. */
export interface PolicyProblem {
  readonly file: string;
  /** From 1; 0 if the file could not be read. */
  readonly line: number;
  readonly column: number;
  /** The key, as `commands.denied.3`; empty for the whole file. */
  readonly path: string;
  readonly message: string;
  /** `default.yaml:12:5: commands.denyd is not a known key (did you mean denied?)` */
  readonly text: string;
}

export type PolicyLoad = { readonly ok: CompiledPolicy } | { readonly problems: readonly PolicyProblem[] };
