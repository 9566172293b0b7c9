import { isDeepStrictEqual } from "node:util";
import type { PolicyDocument } from "../../schemas/generated/types.ts";
import { decideCase, plainVerdict } from "../policy-cases/judge-case.ts";
import type { PolicyCase } from "../policy-cases/parse-case.ts";
import { type CompiledPolicy, type Decision, decide, parsePolicy } from "../policy/index.ts";
import { type NetRules, netRules } from "../network/rules.ts";
import type { JudgedCommand } from "./command-fates.ts";
import { isAllowed } from "./connection-fates.ts";
import type { ObservedConnection } from "./observations.ts";

/** What was tried before the proposal is shown. */
export type Checked = {
  /** Observed commands that it lets run, and others whose verdict it leaves. */
  readonly learned: number;
  readonly unchanged: number;
  /** Observed connections that it allows. */
  readonly connections: number;
  /** Cases of the policy whose verdict and rule it leaves. */
  readonly cases: number;
  /** Commands one word away from an observed one, none of which is judged more gently. */
  readonly neighbours: number;
};

export type Checkable = {
  readonly before: CompiledPolicy;
  /** The file with the proposal in it. */
  readonly text: string;
  /** What it must say, and nothing else. */
  readonly wanted: PolicyDocument;
  readonly commands: readonly JudgedCommand[];
  /** Each must be allowed. */
  readonly connections: readonly ObservedConnection[];
  readonly cases: readonly PolicyCase[];
};

/** What a policy allows of the network by its own words: what its presets stand for is the host's to say. */
export function rulesOf({ net }: CompiledPolicy): NetRules {
  return netRules([{ net, presets: new Map() }]);
}

/** Whether the proposal does what it says and nothing else; a sentence when not. Pure. */
export function checkProposal({
  before,
  text,
  wanted,
  commands,
  connections,
  cases,
}: Checkable): Omit<Checked, "neighbours"> | { readonly wrong: string } {
  const loaded = parsePolicy(text, before.source, undefined, () => before.base ?? []);
  if ("problems" in loaded) return { wrong: `it does not load: ${loaded.problems[0]?.text}` };
  const after = loaded.ok;
  if (!isDeepStrictEqual(after.document, wanted))
    return { wrong: "the layout of the file is not understood, so the lines would land in the wrong place" };
  const stopped = commands.find(({ fate, read, where }) => {
    const verdict = plainVerdict(decide(after, read, where).verdict);
    return fate.kind === "learned" && verdict !== "allow" && verdict !== "isolate";
  });
  if (stopped !== undefined) return { wrong: `it would not let '${stopped.observed.text}' run` };
  const refused = connections.find((one) => !isAllowed(rulesOf(after), one));
  if (refused !== undefined) return { wrong: `it would not allow '${refused.host}:${refused.port}'` };
  const others = commands.filter(({ fate }) => fate.kind !== "learned");
  const changed = others.find(
    ({ read, where }) => !sameAnswer(decide(before, read, where), decide(after, read, where)),
  );
  if (changed !== undefined) return { wrong: `it would change the verdict on '${changed.observed.text}'` };
  const broken = cases.find((one) => !sameAnswer(decideCase(before, one), decideCase(after, one)));
  if (broken !== undefined) return { wrong: `it would change the verdict of the case '${broken.place}'` };
  return {
    learned: commands.length - others.length,
    unchanged: others.length,
    connections: connections.length,
    cases: cases.length,
  };
}

/** Lists that are told by their items when they decide as a whole: an addition changes the words, not the answer. */
const TOLD_BY_ITEMS: ReadonlySet<string> = new Set(["commands.allowed", "fs.write"]);

/** Lines of the file move, so the source of a rule may be another. */
function sameAnswer(one: Decision, other: Decision): boolean {
  const list = one.rule?.list;
  return (
    one.verdict === other.verdict &&
    list === other.rule?.list &&
    ((list !== undefined && TOLD_BY_ITEMS.has(list)) || one.rule?.pattern === other.rule?.pattern)
  );
}
