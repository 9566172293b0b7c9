/** Checks and spends a command's scope token. */
import type { PlacedScope, Scope, UsedScopes } from "../model/scope.ts";
import type { World } from "../../world/backend.ts";
import type { Effective } from "../model/effective.ts";
import type { Place } from "../model/place.ts";
import { isWithin } from "../project/projects.ts";
import { type Refusal, refusal } from "../model/refusal.ts";
import { movedSince } from "./scope-call.ts";
import { filesOf, scopeEntry, scopeText } from "./place-scope.ts";
import type { ScopeGrant, ScopeTokens } from "./tokens.ts";
import type { CompiledPolicy } from "../policy/index.ts";
import { fileLists } from "../policy/files/file-lists.ts";
import { netEntry } from "./net-scope.ts";

/** Returns the scopes of a token for this agent and place, without spending the token. */
export function usableScopes(
  tokens: ScopeTokens,
  agent: string,
  place: Place,
  effective: Effective,
  token: string,
): UsedScopes | Refusal {
  const grant = tokens.find(token);
  if (grant === undefined || !isFor(grant, agent, place)) return worthless();
  if (grant.policyHash !== effective.hash) return otherPolicy(effective);
  const { scopes, approval } = grant;
  return { token, scopes, texts: scopes.map(scopeText), effective: widened(effective, scopes), approval };
}

/**
 * Spends a token for one command, as the last step before the world is made. Returns `giveBack` for a command that did
 * not begin.
 */
export function spendScopes(
  tokens: ScopeTokens,
  place: Place,
  used: UsedScopes,
  isolated: boolean,
): { readonly giveBack: () => void } | Refusal {
  const wrong = (isolated ? cannotHold(place, used) : undefined) ?? movedSince(used.scopes);
  if (wrong !== undefined) return wrong;
  return tokens.take(used.token) ?? worthless();
}

/** Refuses network scopes in a world without network: the command would fail without a reason. */
export function lacksNetwork(
  { scopes, texts }: { readonly scopes: readonly Pick<Scope, "kind">[]; readonly texts: readonly string[] },
  { network, isolation }: Pick<World, "network"> & { readonly isolation: Pick<World["isolation"], "net"> },
): Refusal | undefined {
  if (network !== null || scopes.every(({ kind }) => kind !== "net")) return undefined;
  return refusal(
    "isolation_unavailable",
    `Cannot use the scope '${texts.find((text) => text.startsWith("net:"))}' here: the world's network is '${isolation.net}'`,
    "Run the command without this scope; 'substrate world doctor' shows what this host lacks and how to mend it",
  );
}

function isFor({ agent, project, identity }: ScopeGrant, caller: string, place: Place): boolean {
  return agent === caller && project === place.project && identity === place.identity;
}

/** An overlay holds only changes in the project; writes elsewhere would take effect at once. */
function cannotHold({ project }: Place, { scopes }: UsedScopes): Refusal | undefined {
  const outside = filesOf(scopes).find(({ kind, path }) => kind === "fs.write" && !isWithin(path, project));
  if (outside === undefined) return undefined;
  return refusal(
    "scope_denied",
    `Cannot use the scope '${scopeText(outside)}' here: the policy isolates this command, and writes outside the project cannot be held`,
    "Run the command without this scope, or use the scope for a command that is not isolated",
  );
}

/** The same words for every reason: a guesser learns nothing. */
function worthless(): Refusal {
  return refusal(
    "scope_denied",
    "scope_token: not valid for this agent and project; it has expired, is used up or was never issued to this agent",
    "Ask for the scopes again: POST /v1/request_scopes",
  );
}

function otherPolicy({ id, hash }: Effective): Refusal {
  return refusal(
    "scope_denied",
    `scope_token: issued under another policy than the one in force (${hash})`,
    "Ask for the scopes again: POST /v1/request_scopes, with the same 'profile' as the command",
    { policy_id: id },
  );
}

/**
 * Adds scopes to the policies: more entries in `fs.read` and `fs.write`, unchanged deny lists, and extra names and
 * addresses. The hash differs, so no decision and no world without the scopes is reused. Pure.
 */
export function widened(
  { policies: [first, ...others], ...named }: Effective,
  scopes: readonly Scope[],
): Effective {
  const files = filesOf(scopes);
  const net = scopes.flatMap((scope) => (scope.kind === "net" ? [netEntry(scope)] : []));
  return {
    ...named,
    policies: [wider(first, files), ...others.map((policy) => wider(policy, files))],
    hash: [named.hash, ...scopes.map(scopeText)].join("\0"),
    beyond: { policyHash: named.hash, net },
  };
}

/** A writable file is also readable, as in a policy's lists. */
function wider(policy: CompiledPolicy, scopes: readonly PlacedScope[]): CompiledPolicy {
  const { document } = policy;
  const { read, write } = fileLists(document);
  const entries = (kind: PlacedScope["kind"]): readonly string[] =>
    scopes.filter((scope) => scope.kind === kind).map(scopeEntry);
  const fs = {
    ...document.fs,
    read: [...read, ...entries("fs.read")],
    write: [...write, ...entries("fs.write")],
  };
  return { ...policy, document: { ...document, fs } };
}
