/** Notices of a reply: events inside a command otherwise visible only in the trace (api/README.md). */
import { basename, dirname } from "node:path";
import type { FsDiff, Notice, Verdict } from "../../schemas/generated/types.ts";
import { countChanges, type WritePlace } from "../../world/backend.ts";
import { BUDGET_NAMES } from "../budgets/limits.ts";
import { TIME_LIMIT } from "../budgets/time-limit.ts";
import { because } from "../model/refusal.ts";
import type { FailureTold } from "../programs/world-lacks.ts";
import type { SpanRecord } from "../spans/trace.ts";

/** Models read the replies, and 20 notices are enough to explain a failure; the trace lists the rest. */
const MAX_NOTICES = 20;

/** Further distinct messages are only counted. */
const MAX_KNOWN = 1000;

/** Names that a notice lists besides the first of its folder. */
const MAX_BESIDES = 5;

/**
 * Each npm writes such a log, including an npm left running by an earlier command. Only a command whose npm names the log in its
 * output misses the file on the host.
 */
const NPM_LOG = /\/_logs\/[^/]+\.log$/;

/** npm's cache, filled again without a word. */
const NPM_CACHE = /\/\.npm\/(?:_cacache\/|_update-notifier-last-checked$)/;

/**
 * What a program writes by the way, and goes on without a word where it cannot: Python's compiled modules beside those that it
 * loads, again in each run where uv or a system left them uncompiled, the histories of what was typed, man's formatted pages,
 * Cargo's locks, and the settings of top and Java.
 */
const BY_THE_WAY =
  /\/__pycache__(?:\/|$)|\/\.(?:viminfo|lesshs[tQ]|python_history|node_repl_history)(?:[a-z]?\.tmp|-\d+)?$|^\/var\/cache\/man\/|\/\.cargo\/\.(?:package-cache|global-cache)[^/]*$|\/\.(?:config\/procps|java)(?:\/|$)/;

/** The notices of one command. Its violation spans become notices as they are written. */
export class Notices {
  readonly #span: string;
  readonly #known = new Map<string, Notice>();
  /** Further names in the folder of a notice, by its key. */
  readonly #besides = new Map<string, Set<string>>();
  /** How often each notice had happened when it was last read by {@link sinceLast}. */
  readonly #read = new Map<string, number>();
  #more = 0;
  #listed = false;

  /** `span`: the id of the command's own span. */
  constructor(span: string) {
    this.#span = span;
  }

  /** Adds a line below the command's span; skips events that an agent cannot act on. */
  take(line: SpanRecord): void {
    const kind = kindOf(line);
    // After the reply, a kept process has no caller left to notify.
    if (kind === undefined || this.#listed) return;
    const isStart = line.violation?.kind === "program";
    const written = line.violation?.kind === "write" ? line.violation.subject : undefined;
    if (written !== undefined && BY_THE_WAY.test(written)) return;
    const notice: Notice = {
      kind,
      message: line.message ?? (kind === "observed" ? observedWords(line) : ""),
      rule: isStart ? (line.decision?.rule ?? null) : null,
      program: isStart ? programOf(line) : null,
      count: 1,
      span_id: line.span_id,
      ...(typeof line.approval_id === "string" ? { approval_id: line.approval_id } : {}),
    };
    // Group writes by folder: a tool without write access retries under other file names.
    this.#add(notice, written);
  }

  /** Adds why the command was ended at a time limit that no policy set. */
  takeTimeOver(message: string): void {
    this.#add({ kind: "budget", message, rule: null, program: null, count: 1, span_id: this.#span });
  }

  /** Adds the folders of `fs.write` that the world could not open for writing, with the reason. */
  takePlaces(places: readonly WritePlace[]): void {
    for (const { path, why } of places) {
      if (why === null) continue;
      const message = `'${path}/**' in fs.write has no effect: ${why}`;
      this.#add({ kind: "denied", message, rule: null, program: null, count: 1, span_id: this.#span });
    }
  }

  /** Whether there are any notices yet. */
  get any(): boolean {
    return this.#known.size > 0;
  }

  /** Adds reasons for the failure of a command, or of a program inside it, that no trace line explains. */
  takeFailure(reasons: readonly FailureTold[]): void {
    for (const { program, message } of reasons)
      this.#add({ kind: "denied", message, rule: null, program, count: 1, span_id: this.#span });
  }

  /** Adds connections that an enforcing policy would have refused. */
  takeObserved(sentences: readonly string[]): void {
    for (const message of sentences)
      this.#add({ kind: "observed", message, rule: null, program: null, count: 1, span_id: this.#span });
  }

  /** Adds a sentence about a policy or settings that do not load, or about a git file not covered by the policy. */
  takePolicy(message: string): void {
    this.#add({ kind: "policy", message, rule: null, program: null, count: 1, span_id: this.#span });
  }

  /** Adds why a failed command did not reach a server. */
  takeUnreached(message: string): void {
    this.#add({ kind: "network", message, rule: null, program: null, count: 1, span_id: this.#span });
  }

  /** Adds what a session's state does not hold, and what did not outlive the command. */
  takeSession(message: string): void {
    this.#add({ kind: "session", message, rule: null, program: null, count: 1, span_id: this.#span });
  }

  /**
   * Adds the fate of the changes. `isIsolated`: of the world's own files, nothing outlives the command. `said` returns the output in
   * which its errors are, and is called only where that matters.
   */
  takeChanges(changes: FsDiff, isIsolated: boolean, said: () => string = () => ""): void {
    const { held, world_only } = changes;
    const own = { rule: null, program: null, span_id: this.#span };
    if (held) {
      const { all, words } = countChanges(changes);
      const message = `Changes are held, not yet in the project: ${words}`;
      this.#add({ ...own, kind: "held", message, count: Math.max(all, 1) });
    }
    const stayed = world_only.filter(
      (path) => !NPM_CACHE.test(path) && (!NPM_LOG.test(path) || said().includes(path)),
    );
    if (stayed.length === 0) return;
    const message = isIsolated
      ? `Writes outside the project are gone with this command's world, and no later command sees them: ${placesWords(stayed)}`
      : `Writes stayed in the world and did not reach the host: ${placesWords(stayed)}`;
    this.#add({ ...own, kind: "world_only", message, count: stayed.length });
  }

  /** Returns at most {@link MAX_NOTICES} notices, then a last notice with the number of omitted ones. */
  list(): Notice[] {
    this.#listed = true;
    return this.#bounded(
      [...this.#known].map(([key, notice]) => this.#whole(key, notice)),
      this.#more,
    );
  }

  /** Like {@link list}, but only what happened since the last call, counted from there: for a shell between two lines. */
  sinceLast(): Notice[] {
    const fresh: Notice[] = [];
    for (const [key, notice] of this.#known) {
      const count = notice.count - (this.#read.get(key) ?? 0);
      if (count === 0) continue;
      this.#read.set(key, notice.count);
      fresh.push(this.#whole(key, { ...notice, count }));
    }
    return this.#bounded(fresh, 0);
  }

  #whole(key: string, notice: Notice): Notice {
    const besides = this.#besides.get(key);
    return besides === undefined ? notice : { ...notice, message: notice.message + besidesWords(besides) };
  }

  #bounded(all: Notice[], further: number): Notice[] {
    const [first] = all.slice(MAX_NOTICES);
    if (first === undefined) return all;
    const count = all.length - MAX_NOTICES + further;
    const message = `${count} more notices: GET /v1/trace/${this.#span} lists them all`;
    const rest: Notice = { kind: first.kind, message, rule: null, program: null, count, span_id: this.#span };
    return [...all.slice(0, MAX_NOTICES), rest];
  }

  /** `path`: groups notices by the path's folder, whatever their messages say. */
  #add(notice: Notice, path?: string): void {
    const { kind, program, rule, message } = notice;
    // A retried start varies its words; program and rule stay the same, so they are the key.
    const folder = path === undefined ? undefined : dirname(path);
    const what = folder ?? (program === null ? message : [program, rule?.source, rule?.pattern]);
    const key = JSON.stringify([kind, what]);
    const known = this.#known.get(key);
    if (known !== undefined) {
      // A shell's earlier line was told the known words; a command hears the first ones.
      const words = this.#read.get(key) === known.count ? notice : known;
      this.#known.set(key, { ...words, count: known.count + notice.count });
      if (path === undefined || known.message === message) return;
      const besides = this.#besides.get(key) ?? new Set<string>();
      this.#besides.set(key, besides.add(basename(path)));
    } else if (this.#known.size < MAX_KNOWN) this.#known.set(key, notice);
    else this.#more += 1;
  }
}

function besidesWords(names: ReadonlySet<string>): string {
  const listed = [...names].slice(0, MAX_BESIDES).map((name) => `'${name}'`);
  const more = names.size - listed.length;
  return `. In the same folder also ${[...listed, ...(more > 0 ? [`${more} more`] : [])].join(", ")}`;
}

/** Names the shared parent folder: a package manager's cache contributes hundreds of long names. */
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

/** Limits set by the operator per command, so an agent can respect them next time; limits of a world are not among them. */
const LIMITS: readonly string[] = [...BUDGET_NAMES, TIME_LIMIT];

function kindOf({ violation, decision, code }: SpanRecord): Notice["kind"] | undefined {
  switch (violation?.kind) {
    case "program":
      // A line without a code means either a start that went on, or a count of starts without lines of their own.
      if (code === undefined) return decision !== null && decision.verdict in WOULD ? "observed" : undefined;
      return decision?.verdict === "ask" ? "approval_required" : "denied";
    case "write":
    case "setting":
    case "namespace":
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

/** The action of an enforcing policy at a program start, by the observed verdict. */
const WOULD: Readonly<Partial<Record<Verdict, string>>> = {
  would_deny: "would refuse to start this program",
  would_ask: "would ask a person before starting this program",
  would_isolate: "would start this program only on an overlay",
};

function observedWords({ decision, policy_id: policy }: SpanRecord): string {
  const { verdict, rule } = decision ?? { verdict: "allow" as const, rule: null };
  return `Policy '${policy}' only observes; with 'mode: enforce' it ${WOULD[verdict] ?? ""}${because(rule)}`;
}

/** The first word of a start's subject, an argv as JSON (`redactWords`) that may be cut off. */
const FIRST_WORD = /^\["(?:[^"\\]|\\.)*"/;

/** A line that counts further starts names none. */
function programOf({ program, violation }: SpanRecord): string | null {
  const [first] = FIRST_WORD.exec(violation?.subject ?? "") ?? [];
  const word = first === undefined ? program?.path : (JSON.parse(`${first}]`) as readonly string[])[0];
  return word === undefined ? null : basename(word);
}
