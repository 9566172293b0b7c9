/** Loads policies, and keeps each up to date with its file. */
import { isRefusal, quoted, type Refusal, refusal } from "../model/refusal.ts";
import type { Effective } from "../model/effective.ts";
import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { createHash } from "node:crypto";
import type { PolicyDocument } from "../../schemas/generated/types.ts";
import {
  type BaseFile,
  type CompiledPolicy,
  identityOf,
  loadPolicy,
  PassedRules,
  type PolicyProblem,
} from "../policy/index.ts";
import type { PolicyCommits } from "./policy-commits.ts";

type Loaded = {
  readonly file: string;
  readonly identity: string;
  readonly policy: CompiledPolicy | undefined;
  readonly problems: readonly PolicyProblem[];
  /** Base files that the last reading looked for besides the policy's own. */
  readonly bases: readonly BaseFile[];
  /** Sources of `policy`, from the last successful reading. */
  readonly from: { readonly text: string; readonly bases: readonly BaseFile[] };
};

/**
 * Called after each reading of a file: with the policy, or the problems if loading failed. `news`: the result differs from the
 * last reading's.
 */
export type OnReload = (
  name: string,
  policy: CompiledPolicy | undefined,
  problems: readonly PolicyProblem[],
  news: boolean,
) => void;

/** A policy after a reload of its file. */
export type Reread = {
  readonly name: string;
  /** The policy in force: the last good policy while the file does not load. */
  readonly policy: CompiledPolicy | undefined;
  readonly problems: readonly PolicyProblem[];
};

/** Equals no file's identity. */
const NEVER_READ = "";

const NAME = /^[a-z0-9-]+$/;

export class Policies {
  readonly #folder: string;
  readonly #shipped: string;
  readonly #loaded = new Map<string, Loaded>();
  readonly #passed = new PassedRules();
  readonly #onReload: OnReload;
  readonly #commits: Pick<PolicyCommits, "of" | "forget">;

  /** Looks into the operator's folder first, then into the shipped. */
  constructor(
    folder: string,
    shipped: string,
    commits: Pick<PolicyCommits, "of" | "forget">,
    onReload: OnReload,
  ) {
    this.#folder = folder;
    this.#shipped = shipped;
    this.#onReload = onReload;
    this.#commits = commits;
  }

  /**
   * Returns the assigned policy, narrowed by the named profiles. Compares every file with its loaded form first, so that an edit
   * is in force at once; a file that fails to load changes nothing.
   */
  effective(name: string, profiles: readonly string[]): Effective | Refusal {
    const current = this.#current(name);
    const { policy, problems } = current;
    if (policy === undefined) return broken(name, problems);
    const narrowing: CompiledPolicy[] = [];
    let stale = problems;
    for (const profile of profiles) {
      const found = this.#selectable(profile);
      if (isRefusal(found)) return found;
      narrowing.push(found.policy);
      if (found.problems.length > 0) stale = [...stale, ...found.problems];
    }
    return effectiveOf(policy, narrowing, this.#commitOf(current), stale);
  }

  /** Narrows policies in force by further policies, selectable or not. */
  narrowedBy(holds: Effective, names: readonly string[]): Effective | Refusal {
    let narrowed = holds;
    for (const name of names) {
      const { policy, problems } = this.#current(name);
      if (policy === undefined) return broken(name, problems);
      if (narrowed.policies.some(({ hash }) => hash === policy.hash)) continue;
      const hash = jointHash(narrowed.hash, policy.hash);
      const stale = staleFiles([...(narrowed.stale ?? []), ...problems.map(({ text }) => text)]);
      narrowed = { ...narrowed, ...stale, policies: [...narrowed.policies, policy], hash };
    }
    return narrowed;
  }

  /**
   * Returns the current form of the assigned policy, narrowed by the earlier profiles: for running commands after the profile
   * became unreadable. Undefined if the assigned policy never loaded.
   */
  narrowedAsBefore(name: string, { policies: [, ...before] }: Effective): Effective | undefined {
    const current = this.#current(name);
    const { policy } = current;
    if (policy === undefined) return undefined;
    const now = before.map((each) => {
      const known = [...this.#loaded].find(([, loaded]) => loaded.policy?.source === each.source);
      return (known && this.#current(known[0]).policy) ?? each;
    });
    return effectiveOf(policy, now, this.#commitOf(current));
  }

  /** Returns any policy by name, alone, for the operator's questions. */
  named(name: string): Effective | Refusal {
    if (!this.#exists(name)) return this.#unknown(name);
    const current = this.#current(name);
    const { policy, problems } = current;
    return policy === undefined ? broken(name, problems) : effectiveOf(policy, [], this.#commitOf(current));
  }

  #exists(name: string): boolean {
    return NAME.test(name) && existsSync(this.#file(name));
  }

  #unknown(name: string): Refusal {
    return refusal(
      "unknown_profile",
      `Unknown policy ${quoted(name)}`,
      `Name a policy in ${this.#folder}, or a shipped policy`,
    );
  }

  /** Returns a policy in its current form, with the problems of its file. */
  show(name: string): Pick<Loaded, "policy" | "problems"> {
    return this.#current(name);
  }

  /** Returns a policy for the operator, with the commit of the content in force; refuses an unknown name. */
  inForce(name: string): (Pick<Loaded, "policy" | "problems"> & Pick<Effective, "commit">) | Refusal {
    // A policy in use stays in force after its file is removed.
    if (!this.#loaded.has(name) && !this.#exists(name)) return this.#unknown(name);
    const current = this.#current(name);
    return { ...current, commit: this.#commitOf(current) };
  }

  /** Also null if the commit lacks a base policy of the same folder in the form in force. */
  #commitOf({ file, policy, from }: Loaded): string | null {
    if (policy === undefined) return null;
    const commit = this.#commits.of(file, from.text);
    const beside = from.bases.filter(({ path }) => dirname(path) === dirname(file));
    const isWhole = beside.every(
      ({ path, text }) => text === null || this.#commits.of(path, text) === commit,
    );
    return isWhole ? commit : null;
  }

  /** Returns the current documents of all policies used so far. */
  documents(): readonly PolicyDocument[] {
    return [...this.#loaded.values()].flatMap(({ policy }) => policy?.document ?? []);
  }

  /** Reloads the operator's policies and every policy in use, whatever the files' times. */
  reload(): readonly Reread[] {
    const own = readdirSync(this.#folder)
      .filter((file) => file.endsWith(".yaml"))
      .map((file) => file.slice(0, -".yaml".length));
    return [...new Set([...own, ...this.#loaded.keys()])].sort().map((name) => this.#reread(name));
  }

  #reread(name: string): Reread {
    const before = this.#loaded.get(name);
    if (before !== undefined) this.#loaded.set(name, { ...before, identity: NEVER_READ });
    const { policy, problems } = this.#current(name);
    return { name, policy, problems };
  }

  #selectable(name: string): (Pick<Loaded, "problems"> & { readonly policy: CompiledPolicy }) | Refusal {
    const hint = `Leave 'profile' out, or name a policy with 'selectable: true' in ${this.#folder}`;
    if (!this.#exists(name)) return refusal("unknown_profile", `Unknown policy ${quoted(name)}`, hint);
    const { policy, problems } = this.#current(name);
    if (policy === undefined) return broken(name, problems);
    if (!policy.selectable) return refusal("unknown_profile", `Policy '${name}' is not selectable`, hint);
    return { policy, problems };
  }

  #current(name: string): Loaded {
    const known = this.#loaded.get(name);
    const file = this.#file(name, known?.file);
    const identity = identityOf(file);
    if (known?.identity === identity && known.bases.every(isAsRead)) return known;
    const result = loadPolicy(file, this.#shipped, this.#passed);
    const { text, bases } = result;
    for (const path of [file, ...bases.map((base) => base.path)]) this.#commits.forget(path);
    const loaded: Loaded =
      "ok" in result
        ? { file, identity, policy: result.ok, problems: [], bases, from: { text, bases } }
        : {
            file,
            identity,
            policy: known?.policy,
            problems: result.problems,
            bases,
            from: known?.from ?? { text, bases },
          };
    this.#loaded.set(name, loaded);
    const read = "ok" in result ? result.ok : undefined;
    this.#onReload(name, read, loaded.problems, known !== undefined && isNews(known, loaded));
    return loaded;
  }

  /**
   * Prefers the operator's file to the shipped. A policy once loaded from the operator's file stays there even if the file is
   * removed: the shipped policy of the same name may be weaker. The default is always the operator's.
   */
  #file(name: string, loadedFrom?: string): string {
    const own = join(this.#folder, `${name}.yaml`);
    const shipped = join(this.#shipped, `${name}.yaml`);
    const isOwn = name === "default" || loadedFrom === own || existsSync(own) || !existsSync(shipped);
    return isOwn ? own : shipped;
  }
}

function isNews(known: Loaded, now: Loaded): boolean {
  const said = ({ policy, problems }: Loaded): string =>
    JSON.stringify([policy?.hash, problems.map(({ text }) => text)]);
  return said(known) !== said(now);
}

function isAsRead({ path, identity }: BaseFile): boolean {
  return identityOf(path) === identity;
}

/** Without a policy nothing is allowed. */
function broken(name: string, problems: readonly PolicyProblem[]): Refusal {
  const first = problems[0]?.text ?? "the file is missing";
  return refusal(
    "policy_denied",
    `Policy '${name}' does not load, so nothing is allowed: ${first}`,
    "Ask the operator to run 'substrate policy validate'",
    {
      exit: 126,
      policy_id: name,
      rule: null,
    },
  );
}

function effectiveOf(
  base: CompiledPolicy,
  narrowing: readonly CompiledPolicy[],
  commit: string | null,
  problems: readonly PolicyProblem[] = [],
): Effective {
  const hash = narrowing.reduce((joint, each) => jointHash(joint, each.hash), base.hash);
  const stale = staleFiles(problems.map(({ text }) => text));
  return { policies: [base, ...narrowing], id: base.id, hash, commit, ...stale };
}

/** Keeps the first problem of each file: 'substrate policy validate' lists all problems. */
function staleFiles(problems: readonly string[]): Pick<Effective, "stale"> {
  if (problems.length === 0) return {};
  const files = new Map(problems.toReversed().map((text) => [text.split(":", 1)[0], text]));
  return { stale: [...files.values()].reverse() };
}

function jointHash(one: string, other: string): string {
  return `sha256:${createHash("sha256").update(`${one}\n${other}`).digest("hex")}`;
}
