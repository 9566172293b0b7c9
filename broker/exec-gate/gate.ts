/** Decides about each program that one command starts, by the policies as they are then. */
import { isRefusal, type Refusal } from "../model/refusal.ts";
import type { ProgramFile, ProgramStart } from "../../world/backend.ts";
import type { Granted } from "../approvals/question.ts";
import type { Effective } from "../model/effective.ts";
import { decideStart, type StartDecision, type StartFinding, type Where } from "../policy/index.ts";
import type { OwnCommands } from "./own-commands.ts";
import type { StartRecords } from "./start-records.ts";
import {
  deniedStart,
  needsOverlay,
  noPolicy,
  policyChanged,
  type RefusedStart,
  unapproved,
  undecided,
} from "./start-refusals.ts";
import { BoundedMap } from "../model/bounded-map.ts";
import { BELIEVED_MS } from "../policy/program-paths.ts";

/** Puts the question of a start to a person and waits for the answer; `wait` says for how long. */
export type AskAboutStart = (
  start: ProgramStart,
  finding: StartFinding,
  effective: Effective,
  wait: (milliseconds: number) => void,
) => Promise<Granted | Refusal>;

export type GateParts = {
  /** False: the command began where everything starts. */
  readonly refuses: boolean;
  /** What holds now; undefined while nothing loads. */
  readonly now: () => Effective | undefined;
  readonly wheres: readonly [Where, ...Where[]];
  /** Whether the command runs on an overlay. */
  readonly isIsolated: boolean;
  readonly own: OwnCommands;
  readonly ask: AskAboutStart;
  readonly records: Pick<StartRecords, "noted" | "refused" | "finish">;
  /** Told of bugs. */
  readonly onFault: (what: string, error: unknown) => void;
  /** The command is over, and nobody waits for an answer any more. */
  readonly close: () => void;
};

export class ExecGate {
  readonly #parts: GateParts;
  readonly #kept: KeptStarts;
  readonly #interpreters: Interpreters;

  constructor(parts: GateParts) {
    this.#parts = parts;
    this.#kept = new KeptStarts(parts.wheres);
    this.#interpreters = new Interpreters(parts.wheres[0]);
  }

  /** The command is over: what had no line of its own is counted. */
  finish(): void {
    this.#parts.close();
    this.#parts.records.finish();
  }

  /** Whatever goes wrong here, the program does not start. */
  decide(start: ProgramStart, wait: (milliseconds: number) => void): boolean | Promise<boolean> {
    try {
      const answer = this.#judge(start, wait);
      return typeof answer === "boolean"
        ? answer
        : answer.catch((error: unknown) => this.#broken(start, error));
    } catch (error) {
      return this.#broken(start, error);
    }
  }

  #judge(start: ProgramStart, wait: (milliseconds: number) => void): boolean | Promise<boolean> {
    const effective = this.#parts.now();
    if (effective === undefined) return this.#refuse(start, noPolicy());
    const decision = this.#kept.of(effective.policies, start);
    this.#warn(start, effective, decision);
    const against = this.#notMet(decision, start, effective);
    const [first] = against;
    if (first === undefined) return this.#pass(start);
    if (decision.mode === "observe" || !this.#parts.refuses) return this.#observe(start, effective, first);
    const denial = against.find(({ verdict }) => verdict === "deny");
    if (denial !== undefined) return this.#refuse(start, deniedStart(denial), effective);
    // Nobody is asked about what could not be started after a yes.
    const overlay = against.find(({ verdict }) => verdict === "isolate");
    if (overlay !== undefined) return this.#refuse(start, needsOverlay(overlay), effective);
    return this.#ask(start, effective, against, wait);
  }

  /** Without what the command itself, or what a person said of it, does justice to already. */
  #notMet({ found }: StartDecision, start: ProgramStart, effective: Effective): readonly StartFinding[] {
    const { isIsolated, own } = this.#parts;
    const asking = found.filter(({ verdict, rule }) => verdict === "ask" && rule.list !== "approval.require");
    const isListed = this.#interpreters.isNext(start);
    const isApproved = asking.length > 0 && own.isApproved(asking, start, effective);
    return found.filter(({ verdict, rule }) => {
      if (rule.list === "commands.allowed") return !isListed;
      if (rule.list === "approval.require")
        return !isListed && !isApproved && !own.speaksFor(start, effective);
      return verdict === "isolate" ? !isIsolated : verdict !== "ask" || !isApproved;
    });
  }

  #pass(start: ProgramStart): true {
    this.#interpreters.passed(start);
    return true;
  }

  #warn(start: ProgramStart, effective: Effective, { mode, warnings }: StartDecision): void {
    for (const warning of warnings) {
      const { rule } = warning;
      if (this.#parts.own.hasTold(warning, start)) continue;
      this.#parts.records.noted(start, effective, { verdict: "allow", mode, rule });
    }
  }

  #observe(start: ProgramStart, effective: Effective, finding: StartFinding): true {
    const { verdict, rule } = finding;
    if (!this.#parts.own.hasTold(finding, start))
      this.#parts.records.noted(start, effective, { verdict: `would_${verdict}`, mode: "observe", rule });
    return true;
  }

  #refuse(start: ProgramStart, refused: RefusedStart, effective?: Effective): false {
    this.#parts.records.refused(start, refused, effective);
    return false;
  }

  async #ask(
    start: ProgramStart,
    effective: Effective,
    asking: readonly StartFinding[],
    wait: (milliseconds: number) => void,
  ): Promise<boolean> {
    const [first] = asking;
    if (first === undefined) return true;
    const granted = await this.#parts.ask(start, first, effective, wait);
    if (isRefusal(granted)) return this.#refuse(start, unapproved(first, granted), effective);
    // Minutes may have passed: what holds now must still let it start.
    const now = this.#parts.now();
    if (now?.hash !== effective.hash) return this.#refuse(start, policyChanged(first), now);
    this.#parts.own.approve(asking, start, effective);
    return this.#pass(start);
  }

  #broken(start: ProgramStart, error: unknown): false {
    this.#parts.onFault("Whether a program may start could not be decided", error);
    try {
      return this.#refuse(start, undecided());
    } catch (fault) {
      this.#parts.onFault("That a program was refused cannot be recorded", fault);
      return false;
    }
  }
}

/** Scripts that were let start and whose interpreter has not been asked for yet: each is one step of one process. */
const MAX_WAITING = 256;

/**
 * `#!/usr/bin/env python3`: env looks for the interpreter and starts it of its own. Where the kernel itself starts one
 * (`#!/usr/bin/python3`) a list of all that may run is asked about the script alone, and so it is here.
 */
class Interpreters {
  readonly #where: Where;
  /** What a process starts next, by its id. */
  readonly #next = new Map<number, string>();

  constructor(where: Where) {
    this.#where = where;
  }

  /** A start goes on. */
  passed({ pid, files, cut }: ProgramStart): void {
    const last = files.at(-1);
    if (cut || files.length < 2 || last === undefined || !looksForAnother(last)) return;
    const [oldest] = this.#next.size < MAX_WAITING ? [] : this.#next.keys();
    if (oldest !== undefined) this.#next.delete(oldest);
    this.#next.set(pid, JSON.stringify(last.argv.slice(1)));
  }

  /** Whether this is what a script that was let start is started by: the program that its name stands for, with its very words. */
  isNext({ pid, files: [file], cut }: ProgramStart): boolean {
    const next = this.#next.get(pid);
    this.#next.delete(pid);
    const [name = ""] = file.argv;
    const isFound = file.path !== null && this.#where.resolve?.(name)?.real === file.path;
    return !cut && isFound && next === JSON.stringify(file.argv);
  }
}

const ENV = /^\/(usr\/)?bin\/env$/;

/** Without options and variables, which could make another program of it. */
function looksForAnother({ path, argv: [, program] }: ProgramFile): boolean {
  return (
    path !== null &&
    ENV.test(path) &&
    program !== undefined &&
    /^[\w.+-]+$/.test(program) &&
    !program.startsWith("-")
  );
}

/** Decisions kept for one command, and how long its words may be to be kept, in characters. */
const MAX_KEPT = 500;
const MAX_WORDS = 4096;

type Kept = { readonly decision: StartDecision; readonly at: number };

/**
 * What was decided about the starts of one command: builds start the same programs by the thousand. It holds as long as the
 * policies are the very same ones, and what names stand for as long as elsewhere.
 */
class KeptStarts {
  readonly #wheres: readonly [Where, ...Where[]];
  readonly #kept = new BoundedMap<string, Kept>(MAX_KEPT);
  #policies: Effective["policies"] | undefined;

  constructor(wheres: readonly [Where, ...Where[]]) {
    this.#wheres = wheres;
  }

  of(policies: Effective["policies"], start: ProgramStart): StartDecision {
    if (!isSame(policies, this.#policies)) this.#kept.clear();
    this.#policies = policies;
    const { files, cut, unread, starter } = start;
    const key = JSON.stringify([files, cut, unread, starter]);
    const known = this.#kept.get(key);
    this.#kept.delete(key);
    const now = performance.now();
    const fresh = known !== undefined && now - known.at < BELIEVED_MS;
    const kept = fresh ? known : { decision: decideStart(policies, start, this.#wheres), at: now };
    if (key.length <= MAX_WORDS) this.#kept.set(key, kept);
    return kept.decision;
  }
}

function isSame(policies: Effective["policies"], before: Effective["policies"] | undefined): boolean {
  return policies.length === before?.length && policies.every((policy, index) => policy === before[index]);
}
