/** What happened inside a command and would otherwise stand in the trace alone, told in its reply (CONTRACT §3). */
import { basename, dirname } from "node:path";
import type { FsDiff, Notice, Verdict } from "../../schemas/generated/types.ts";
import type { WritePlace } from "../../world/backend.ts";
import { BUDGET_NAMES } from "../budgets/limits.ts";
import { TIME_LIMIT } from "../budgets/time-limit.ts";
import type { FailureTold } from "../programs/world-lacks.ts";
import type { SpanRecord } from "../spans/trace.ts";

/** A reply is read by a model: so many notices say what is wrong, and the trace has the rest. */
const MAX_NOTICES = 20;

/** Notices beyond this many different messages are counted together. */
const MAX_KNOWN = 1000;

/**
 * Each npm writes one, also one that a command before left running, and nobody misses it on the host but who is told by npm to read it.
 */
const NPM_LOG = /\/_logs\/[^/]+\.log$/;

/** The notices of one command. Its violation spans become notices as they are written. */
export class Notices {
  readonly #span: string;
  readonly #known = new Map<string, Notice>();
  #more = 0;
  #listed = false;

  /** `span`: the command's own. */
  constructor(span: string) {
    this.#span = span;
  }

  /** Takes a line below the command's own; one that is about nothing an agent can act on is no notice. */
  take(line: SpanRecord): void {
    const kind = kindOf(line);
    // What a kept process does after the reply has nobody to be told.
    if (kind === undefined || this.#listed) return;
    const isStart = line.violation?.kind === "program";
    const notice: Notice = {
      kind,
      message: line.message ?? (kind === "observed" ? observedWords(line) : ""),
      rule: isStart ? (line.decision?.rule ?? null) : null,
      program: isStart ? programOf(line) : null,
      count: 1,
      span_id: line.span_id,
      ...(typeof line.approval_id === "string" ? { approval_id: line.approval_id } : {}),
    };
    // A tool that may not write in a folder tries it again under other names.
    this.#add(notice, line.violation?.kind === "write" ? dirname(line.violation.subject) : undefined);
  }

  /** Takes why the command was ended, when its own call said how long it may take, or nobody did. */
  takeTimeOver(message: string): void {
    this.#add({ kind: "budget", message, rule: null, program: null, count: 1, span_id: this.#span });
  }

  /** Takes the folders of `fs.write` that are not there to be written. */
  takePlaces(places: readonly WritePlace[]): void {
    for (const { path, why } of places) {
      if (why === null) continue;
      const message = `'${path}/**' in fs.write opens nothing: ${why}`;
      this.#add({ kind: "denied", message, rule: null, program: null, count: 1, span_id: this.#span });
    }
  }

  /** Whether anything is told by now. */
  get any(): boolean {
    return this.#known.size > 0;
  }

  /** Takes why a command, or a program of it, failed where no line of the trace says so. */
  takeFailure(reasons: readonly FailureTold[]): void {
    for (const { program, message } of reasons)
      this.#add({ kind: "denied", message, rule: null, program, count: 1, span_id: this.#span });
  }

  /** Takes what of its network an enforcing policy would have refused. */
  takeObserved(sentences: readonly string[]): void {
    for (const message of sentences)
      this.#add({ kind: "observed", message, rule: null, program: null, count: 1, span_id: this.#span });
  }

  /** Takes a sentence about a policy or settings that do not load, or about a file of git's that a policy does not cover. */
  takePolicy(message: string): void {
    this.#add({ kind: "policy", message, rule: null, program: null, count: 1, span_id: this.#span });
  }

  /** Takes what became of the changes; `said` is what the command wrote to its standard error. */
  takeChanges({ held, world_only, writes, mods, deletes, dirs }: FsDiff, said = ""): void {
    const own = { rule: null, program: null, span_id: this.#span };
    if (held) {
      const count = writes.length + mods.length + deletes.length + dirs.length;
      const message = `Changes are held and not in the project: ${writes.length} written, ${mods.length} modified, ${deletes.length} deleted`;
      this.#add({ ...own, kind: "held", message, count: Math.max(count, 1) });
    }
    const stayed = world_only.filter((path) => !NPM_LOG.test(path) || said.includes(path));
    if (stayed.length === 0) return;
    const message = `Writes stayed in the world and are not on the host: ${placesWords(stayed)}`;
    this.#add({ ...own, kind: "world_only", message, count: stayed.length });
  }

  /** At most {@link MAX_NOTICES}, then one that says how many more there are. */
  list(): Notice[] {
    this.#listed = true;
    const all = [...this.#known.values()];
    const [first] = all.slice(MAX_NOTICES);
    if (first === undefined) return all;
    const count = all.length - MAX_NOTICES + this.#more;
    const message = `${count} more notices: GET /v1/trace/${this.#span} lists the spans of all`;
    const rest: Notice = { kind: first.kind, message, rule: null, program: null, count, span_id: this.#span };
    return [...all.slice(0, MAX_NOTICES), rest];
  }

  /** `place`: where it happened, if that makes it the same whatever its message says. */
  #add(notice: Notice, place?: string): void {
    const { kind, program, rule, message } = notice;
    // A start that is tried again and again says other words each time; what is denied and why stays the same.
    const what = place ?? (program === null ? message : [program, rule?.source, rule?.pattern]);
    const key = JSON.stringify([kind, what]);
    const known = this.#known.get(key);
    if (known !== undefined) this.#known.set(key, { ...known, count: known.count + notice.count });
    else if (this.#known.size < MAX_KNOWN) this.#known.set(key, notice);
    else this.#more += 1;
  }
}

/** A package manager's cache has hundreds of long names: the folder around them says what they are. */
function placesWords(paths: readonly string[]): string {
  const [first = "", ...others] = paths;
  if (others.length === 0) return `'${first}'`;
  const shared = others.reduce((folder, path) => {
    let around = folder;
    while (around !== "/" && !path.startsWith(`${around}/`)) around = dirname(around);
    return around;
  }, dirname(first));
  return shared === "/" || dirname(shared) === "/"
    ? `'${first}' and ${others.length} more`
    : `${paths.length} paths below '${shared}'`;
}

/** What the operator limits for a command, and an agent can heed next time; limits of a world are no such amount. */
const LIMITS: readonly string[] = [...BUDGET_NAMES, TIME_LIMIT];

function kindOf({ violation, decision, code }: SpanRecord): Notice["kind"] | undefined {
  switch (violation?.kind) {
    case "program":
      // A line without a code is about a start that went on, or counts those that have no line.
      if (code === undefined) return decision !== null && decision.verdict in WOULD ? "observed" : undefined;
      return decision?.verdict === "ask" ? "approval_required" : "denied";
    case "write":
    case "setting":
      return "denied";
    case "denied_name":
      return "quarantined";
    case "name":
    case "connection":
      return "network";
    case "limit":
      return LIMITS.includes(violation.subject) ? "budget" : undefined;
    default:
      return undefined;
  }
}

/** What an enforcing policy would have done about the start of a program. */
const WOULD: Readonly<Partial<Record<Verdict, string>>> = {
  would_deny: "would refuse that this program starts",
  would_ask: "would ask a person before this program starts",
  would_isolate: "would let this program start on an overlay alone",
};

function observedWords({ decision, policy_id: policy }: SpanRecord): string {
  const { verdict, rule } = decision ?? { verdict: "allow" as const, rule: null };
  const reason = rule?.reason === undefined ? "" : `: ${rule.reason}`;
  const why =
    rule === null
      ? ""
      : `: '${rule.fragment}' matches '${rule.pattern}' in ${rule.list} (${rule.source})${reason}`;
  return `Policy '${policy}' only observes; with 'mode: enforce' it ${WOULD[verdict] ?? ""}${why}`;
}

/** The subject of a start is its words as JSON (`redactWords`). */
function programOf({ violation }: SpanRecord): string | null {
  const [word] = JSON.parse(violation?.subject ?? "[]") as readonly string[];
  return word === undefined ? null : basename(word);
}
