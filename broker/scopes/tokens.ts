import { createHash, randomBytes } from "node:crypto";
import type { BoundPolicy } from "../approvals/question.ts";
import type { Scope } from "../model/scope.ts";

/** A token's grant and the facts that bind the token. */
export type ScopeGrant = {
  readonly agent: string;
  readonly project: string;
  /** Device and inode of the project folder. */
  readonly identity: string;
  readonly policyHash: string;
  readonly policies: readonly BoundPolicy[];
  readonly scopes: readonly Scope[];
  /** `policy`: nothing beyond the policy. */
  readonly how: "once" | "session" | "policy";
  /** The person's approval; null when nobody was asked. */
  readonly approval: string | null;
};

type Kept = ScopeGrant & { readonly until: number };

/** Live tokens per agent, and of all labels together. The oldest is evicted; its agent must ask again. */
const MAX_OF_AGENT = 64;
const MAX_OF_LABELS = 1024;

/** The broker's tokens by hash. Kept only in memory: no copy can leak, and a restart invalidates all. */
export class ScopeTokens {
  readonly #kept = new Map<string, Kept>();
  readonly #isLabel: (agent: string) => boolean;

  /**
   * `isLabel`: whether an agent lacks its own socket. Labels cost nothing, so labels evict only each other's tokens.
   */
  constructor(isLabel: (agent: string) => boolean) {
    this.#isLabel = isLabel;
  }

  /** Issues a token that expires after `forMs`. */
  issue(grant: ScopeGrant, forMs: number): string {
    this.#makeRoom(grant.agent);
    const token = `scp_${randomBytes(32).toString("base64url")}`;
    // A monotonic clock.
    this.#kept.set(hashOf(token), { ...grant, until: performance.now() + forMs });
    return token;
  }

  /** Returns a token's grant; undefined for an unknown, used or expired token. */
  find(token: string): ScopeGrant | undefined {
    const hash = hashOf(token);
    const kept = this.#kept.get(hash);
    if (kept === undefined || kept.until > performance.now()) return kept;
    this.#kept.delete(hash);
    return undefined;
  }

  /**
   * Like `find`, but uses up a token for one command. Call `giveBack` if the command did not begin. Runs in a single
   * turn of the event loop, so only one of two concurrent commands gets the token.
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

  /** Drops tokens given under an older version of a reloaded policy. */
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

  /** Candidates for eviction when the quota of the agent, or of all labels, is full. */
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
