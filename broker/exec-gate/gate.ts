/** Decides on each program that a command starts, by the policies of that moment. */
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
import { createHash } from "node:crypto";
import { BoundedMap } from "../model/bounded-map.ts";
import { turnFor } from "../model/turns.ts";
import { BELIEVED_MS } from "../policy/program-paths.ts";

/** Asks a person about a start and awaits the answer; `wait` receives the waiting time. */
export type AskAboutStart = (
  start: ProgramStart,
  finding: StartFinding,
  effective: Effective,
  wait: (milliseconds: number) => void,
) => Promise<Granted | Refusal>;

export type GateParts = {
  /** False: at the command's start, all policies only observed. */
  readonly refuses: boolean;
  /** The policies in force; undefined while none loads. */
  readonly now: () => Effective | undefined;
  readonly wheres: readonly [Where, ...Where[]];
  /** Whether the command runs on an overlay. */
  readonly isIsolated: boolean;
  readonly own: OwnCommands;
  readonly ask: AskAboutStart;
  readonly records: Pick<StartRecords, "noted" | "refused" | "unread" | "finish">;
  /** Reports internal errors. */
  readonly onFault: (what: string, error: unknown) => void;
  /** Called at the command's end: pending questions are dropped. */
  readonly close: () => void;
};

/** Starts with long words of a command that is only observed, which wait for their turn: further ones are counted. */
const MOST_WAITING = 64;

export class ExecGate {
  readonly #parts: GateParts;
  readonly #kept: KeptStarts;
  readonly #interpreters: Interpreters;
  /** The last start of each process that waits for its turn: a process's starts are judged in order. */
  readonly #waiting = new Map<number, Promise<void>>();
  /** Number of starts that wait for their turn; one process can have many. */
  #waits = 0;

  constructor(parts: GateParts) {
    this.#parts = parts;
    this.#kept = new KeptStarts(parts.wheres);
    this.#interpreters = new Interpreters(parts.wheres[0]);
  }

  /** Ends the gate: starts without a line are counted. */
  finish(): void {
    this.#parts.close();
    this.#parts.records.finish();
  }

  /** Decides on a start. Any internal error refuses the program. */
  decide(start: ProgramStart, wait: (milliseconds: number) => void): boolean | Promise<boolean> {
    const { pid } = start;
    const before = this.#waiting.get(pid);
    const turn = before === undefined ? this.#turnFor(start) : before.then(() => this.#turnFor(start));
    if (turn === undefined) return this.#decideNow(start, wait);
    if (!this.#parts.refuses && this.#waits >= MOST_WAITING) {
      this.#parts.records.unread();
      return true;
    }
    let answer: boolean | Promise<boolean> = false;
    this.#waits += 1;
    const judged = turn.then(() => {
      this.#waits -= 1;
      answer = this.#decideNow(start, wait);
      if (this.#waiting.get(pid) === judged) this.#waiting.delete(pid);
    });
    this.#waiting.set(pid, judged);
    return judged.then(() => answer);
  }

  /** Settles when each start up to now is judged; a person may still be asked about some. */
  async judged(): Promise<void> {
    await Promise.all(this.#waiting.values());
  }

  /** Judging a start with long words takes some hundred milliseconds, and a world can make any number of them at once. */
  #turnFor(start: ProgramStart): Promise<void> | undefined {
    const [{ argv }] = start.files;
    if (argv.length < FEW_WORDS && argv.every(({ length }) => length < FEW_WORDS)) return undefined;
    return turnFor(argv.reduce((sum, { length }) => sum + length + 1, 0));
  }

  #decideNow(start: ProgramStart, wait: (milliseconds: number) => void): boolean | Promise<boolean> {
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
    // No question about a start that would be refused despite approval.
    const overlay = against.find(({ verdict }) => verdict === "isolate");
    if (overlay !== undefined) return this.#refuse(start, needsOverlay(overlay), effective);
    return this.#ask(start, effective, against, wait);
  }

  /** Drops findings already satisfied by the command itself or by an approval. */
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
    // Minutes may have passed: an answer counts only under unchanged policies.
    const now = this.#parts.now();
    if (now?.hash !== effective.hash) return this.#refuse(start, policyChanged(first), now);
    this.#parts.own.approve(asking, start, effective);
    return this.#pass(start);
  }

  #broken(start: ProgramStart, error: unknown): false {
    this.#parts.onFault("Cannot decide whether a program may start", error);
    try {
      return this.#refuse(start, undecided());
    } catch (fault) {
      this.#parts.onFault("Cannot record the refusal of a program", fault);
      return false;
    }
  }
}

/** Allowed scripts whose interpreter has not started yet, one per process. */
const MAX_WAITING = 256;

/**
 * Handles `#!/usr/bin/env python3`, where env finds and starts the interpreter as a second start. With
 * `#!/usr/bin/python3` the kernel starts the interpreter, and `commands.allowed` is asked about the script alone; so
 * the gate also skips env's second start.
 */
class Interpreters {
  readonly #where: Where;
  /** Expected next start by process id. */
  readonly #next = new Map<number, string>();

  constructor(where: Where) {
    this.#where = where;
  }

  /** Notes the interpreter expected after an allowed start. */
  passed({ pid, files, cut }: ProgramStart): void {
    const last = files.at(-1);
    if (cut || files.length < 2 || last === undefined || !looksForAnother(last)) return;
    const [oldest] = this.#next.size < MAX_WAITING ? [] : this.#next.keys();
    if (oldest !== undefined) this.#next.delete(oldest);
    this.#next.set(pid, JSON.stringify(last.argv.slice(1)));
  }

  /**
   * Whether a start is the expected interpreter of an allowed script: the program of that name, with exactly the same
   * arguments.
   */
  isNext({ pid, files: [file], cut }: ProgramStart): boolean {
    const next = this.#next.get(pid);
    this.#next.delete(pid);
    const [name = ""] = file.argv;
    const isFound = file.path !== null && this.#where.resolve?.(name)?.real === file.path;
    return !cut && isFound && next === JSON.stringify(file.argv);
  }
}

const ENV = /^\/(usr\/)?bin\/env$/;

/** Whether env only looks up a program: options and variables could select another program. */
function looksForAnother({ path, argv: [, program] }: ProgramFile): boolean {
  return (
    path !== null &&
    ENV.test(path) &&
    program !== undefined &&
    /^[\w.+-]+$/.test(program) &&
    !program.startsWith("-")
  );
}

/** Cached decisions per command, and the words that are a key themselves, in characters; longer words are kept by their hash. */
const MAX_KEPT = 500;
const MAX_WORDS = 4096;

/** Cached decisions about longer words, up to so many characters: each takes some sixty times as much memory. */
const MAX_KEPT_LONG = 8;
const MAX_WORDS_LONG = 64 * 1024;

/** So few and so short words are no long ones together. */
const FEW_WORDS = 64;

type Kept = { readonly decision: StartDecision; readonly at: number };

/**
 * Cache of decisions on a command's starts: builds start the same programs by the thousand. Valid for identical
 * policies, and for `BELIEVED_MS` because program names may resolve differently later.
 */
class KeptStarts {
  readonly #wheres: readonly [Where, ...Where[]];
  readonly #short = new BoundedMap<string, Kept>(MAX_KEPT);
  readonly #long = new BoundedMap<string, Kept>(MAX_KEPT_LONG);
  #policies: Effective["policies"] | undefined;

  constructor(wheres: readonly [Where, ...Where[]]) {
    this.#wheres = wheres;
  }

  of(policies: Effective["policies"], start: ProgramStart): StartDecision {
    if (!isSame(policies, this.#policies)) for (const kept of [this.#short, this.#long]) kept.clear();
    this.#policies = policies;
    const { files, cut, unread, starter } = start;
    const words = JSON.stringify([files, cut, unread, starter]);
    const isLong = words.length > MAX_WORDS;
    const key = isLong ? createHash("sha256").update(words).digest("base64") : words;
    const decisions = isLong ? this.#long : this.#short;
    const known = decisions.get(key);
    decisions.delete(key);
    const now = performance.now();
    const fresh = known !== undefined && now - known.at < BELIEVED_MS;
    const kept = fresh ? known : { decision: decideStart(policies, start, this.#wheres), at: now };
    if (words.length <= MAX_WORDS_LONG) decisions.set(key, kept);
    return kept.decision;
  }
}

function isSame(policies: Effective["policies"], before: Effective["policies"] | undefined): boolean {
  return policies.length === before?.length && policies.every((policy, index) => policy === before[index]);
}
