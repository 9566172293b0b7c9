/** Which policy holds, and that it is the one on the disk now. */
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
  /** Files that the last reading looked for beside this one. */
  readonly bases: readonly BaseFile[];
  /** What `policy` was made from: of the last reading that succeeded. */
  readonly from: { readonly text: string; readonly bases: readonly BaseFile[] };
};

/**
 * Told each time a file was read: the policy when it loads, what is wrong when not. `news`: it says something else than
 * the reading before.
 */
export type OnReload = (
  name: string,
  policy: CompiledPolicy | undefined,
  problems: readonly PolicyProblem[],
  news: boolean,
) => void;

/** A policy after its file was read again. */
export type Reread = {
  readonly name: string;
  /** What holds now: the last good one when the file does not load. */
  readonly policy: CompiledPolicy | undefined;
  readonly problems: readonly PolicyProblem[];
};

/** No file has this identity. */
const NEVER_READ = "";

const NAME = /^[a-z0-9-]+$/;

export class Policies {
  readonly #folder: string;
  readonly #shipped: string;
  readonly #loaded = new Map<string, Loaded>();
  readonly #passed = new PassedRules();
  readonly #onReload: OnReload;
  readonly #commits: Pick<PolicyCommits, "of" | "forget">;

  /** The operator's folder is looked into first, then the shipped one. */
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
   * The assigned policy, narrowed by the named profiles if there are any. Every file is compared with its loaded form
   * first, so an edit holds for this command already; one that does not load changes nothing.
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

  /** What holds, narrowed by further policies too, whether a request could name them or not. */
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
   * The assigned policy as it is now, narrowed by what narrowed it before: for what runs already, when it cannot be told any more
   * by which profile. Undefined when the assigned one has never loaded.
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

  /** Any policy by name, alone: for the operator, who asks what would hold. */
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
      `No policy is called ${quoted(name)}`,
      `Name a policy in ${this.#folder}, or a shipped one`,
    );
  }

  /** A policy by name as it is now, with what is wrong with its file. */
  show(name: string): Pick<Loaded, "policy" | "problems"> {
    return this.#current(name);
  }

  /** The same for the operator, who may ask for one that there is not; with the commit of what holds. */
  inForce(name: string): (Pick<Loaded, "policy" | "problems"> & Pick<Effective, "commit">) | Refusal {
    // One that was in use is held to although its file is gone.
    if (!this.#loaded.has(name) && !this.#exists(name)) return this.#unknown(name);
    const current = this.#current(name);
    return { ...current, commit: this.#commitOf(current) };
  }

  /** Null too where a policy that it starts from, in the same folder, is not in that commit as it holds. */
  #commitOf({ file, policy, from }: Loaded): string | null {
    if (policy === undefined) return null;
    const commit = this.#commits.of(file, from.text);
    const beside = from.bases.filter(({ path }) => dirname(path) === dirname(file));
    const isWhole = beside.every(
      ({ path, text }) => text === null || this.#commits.of(path, text) === commit,
    );
    return isWhole ? commit : null;
  }

  /** Of every policy that was asked for so far, as it holds now. */
  documents(): readonly PolicyDocument[] {
    return [...this.#loaded.values()].flatMap(({ policy }) => policy?.document ?? []);
  }

  /** Reads the operator's policies, and every other one in use, whatever the times of their files say. */
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
    if (!this.#exists(name)) return refusal("unknown_profile", `No policy is called ${quoted(name)}`, hint);
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
   * The operator's file before the shipped one. Once it was the operator's, it stays that one even when it is gone: the
   * shipped policy of the same name may say less. The default is always the operator's.
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

/** The first problem of a file is enough: 'substrate policy validate' lists all of them. */
function staleFiles(problems: readonly string[]): Pick<Effective, "stale"> {
  if (problems.length === 0) return {};
  const files = new Map(problems.toReversed().map((text) => [text.split(":", 1)[0], text]));
  return { stale: [...files.values()].reverse() };
}

function jointHash(one: string, other: string): string {
  return `sha256:${createHash("sha256").update(`${one}\n${other}`).digest("hex")}`;
}
