import { createHash, randomBytes } from "node:crypto";
import type { BoundPolicy } from "../approvals/question.ts";
import type { Scope } from "../model/scope.ts";

/** What a token stands for, and all that it is bound to. */
export type ScopeGrant = {
  readonly agent: string;
  readonly project: string;
  /** Device and inode of the project folder. */
  readonly identity: string;
  readonly policyHash: string;
  readonly policies: readonly BoundPolicy[];
  readonly scopes: readonly Scope[];
  /** `policy`: it gives nothing that the policy does not. */
  readonly how: "once" | "session" | "policy";
  /** The approval that a person gave; null when nobody was asked. */
  readonly approval: string | null;
};

type Kept = ScopeGrant & { readonly until: number };

/** Live tokens of one agent, and of all labels together. The oldest of them goes first; its agent asks again. */
const MAX_OF_AGENT = 64;
const MAX_OF_LABELS = 1024;

/** The tokens of this broker, by hash. In memory alone: no copy can leak, and none is worth anything after a restart. */
export class ScopeTokens {
  readonly #kept = new Map<string, Kept>();
  readonly #isLabel: (agent: string) => boolean;

  /** `isLabel`: whether an agent has no socket of its own. Labels cost nothing, so they push out each other's alone. */
  constructor(isLabel: (agent: string) => boolean) {
    this.#isLabel = isLabel;
  }

  /** A new token, good for `forMs`. */
  issue(grant: ScopeGrant, forMs: number): string {
    this.#makeRoom(grant.agent);
    const token = `scp_${randomBytes(32).toString("base64url")}`;
    // A clock that nobody sets back.
    this.#kept.set(hashOf(token), { ...grant, until: performance.now() + forMs });
    return token;
  }

  /** What a token stands for; undefined when it was never given, was used up, or is over. */
  find(token: string): ScopeGrant | undefined {
    const hash = hashOf(token);
    const kept = this.#kept.get(hash);
    if (kept === undefined || kept.until > performance.now()) return kept;
    this.#kept.delete(hash);
    return undefined;
  }

  /**
   * The same, used up if it was for one command. `giveBack` is for a command that did not begin after all. In one turn of the
   * loop, so that of two commands with the same token one gets it.
   */
  take(token: string): { readonly grant: ScopeGrant; readonly giveBack: () => void } | undefined {
    const grant = this.find(token);
    const hash = hashOf(token);
    const kept = this.#kept.get(hash);
    if (grant === undefined || kept === undefined) return undefined;
    if (grant.how !== "once") return { grant, giveBack: () => undefined };
    this.#kept.delete(hash);
    return { grant, giveBack: () => void this.#kept.set(hash, kept) };
  }

  /** A policy was read: tokens that were given under other words of it are over. */
  policyRead(source: string, hash: string): void {
    for (const [key, { policies }] of this.#kept) {
      if (policies.some((policy) => policy.source === source && policy.hash !== hash)) this.#kept.delete(key);
    }
  }

  #makeRoom(agent: string): void {
    const now = performance.now();
    for (const [hash, { until }] of this.#kept) if (until <= now) this.#kept.delete(hash);
    const [oldest] = this.#crowdOf(agent);
    if (oldest !== undefined) this.#kept.delete(oldest[0]);
  }

  /** Those of which one has to go for one more. */
  #crowdOf(agent: string): readonly (readonly [hash: string, kept: Kept])[] {
    const all = [...this.#kept];
    const own = all.filter(([, kept]) => kept.agent === agent);
    if (own.length >= MAX_OF_AGENT) return own;
    const labels = this.#isLabel(agent) ? all.filter(([, kept]) => this.#isLabel(kept.agent)) : [];
    return labels.length >= MAX_OF_LABELS ? labels : [];
  }
}

function hashOf(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}
