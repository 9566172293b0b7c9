import { isRefusal, type Refusal, refusal } from "../model/refusal.ts";
import type { RequestScopesRequest } from "../../schemas/generated/types.ts";
import type { Ground } from "../policies/judge.ts";
import type { Place, Session } from "../model/place.ts";
import type { NetScope, NamedScope, Scope } from "../model/scope.ts";
import { filesOf, placeScope, scopeText } from "./place-scope.ts";

/** A valid request for scopes with its place and policies, before anyone is asked. */
export type ScopeCall = {
  readonly span: string;
  readonly agent: string;
  readonly request: RequestScopesRequest;
  readonly place: Place;
  readonly session: Session;
  readonly ground: Ground;
};

/** Resolves scopes in order; returns the first refusal. Network scopes need no resolution. */
export function placeAll(named: readonly (NamedScope | NetScope)[]): readonly Scope[] | Refusal {
  const placed: Scope[] = [];
  for (const scope of named) {
    const found = scope.kind === "net" ? scope : placeScope(scope);
    if (isRefusal(found)) return found;
    placed.push(found);
  }
  return placed;
}

/**
 * Refuses a scope whose path now leads to another file or folder, say by a new link. Undefined when all are unchanged.
 */
export function movedSince(scopes: readonly Scope[]): Refusal | undefined {
  const files = filesOf(scopes);
  const placed = placeAll(files.map(({ named }) => named));
  if (isRefusal(placed)) return placed;
  const now = filesOf(placed);
  const other = files.find(
    ({ path, identity }, at) => now[at]?.path !== path || now[at].identity !== identity,
  );
  if (other === undefined) return undefined;
  return refusal(
    "scope_denied",
    `Cannot use the scope '${scopeText(other)}': the file or folder there was replaced since the scope was requested`,
    "Ask for the scope again: POST /v1/request_scopes",
  );
}
