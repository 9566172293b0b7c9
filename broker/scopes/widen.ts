import type { Effective } from "../model/effective.ts";
import type { CompiledPolicy } from "../policy/index.ts";
import { fileLists } from "../policy/file-lists.ts";
import { netEntry } from "./net-scope.ts";
import type { PlacedScope, Scope } from "../model/scope.ts";
import { filesOf, scopeEntry, scopeText } from "./place-scope.ts";

/**
 * What holds with these scopes: the same policies with more in `fs.read` and `fs.write`, the deny lists as they are, and
 * names and addresses beside them all. Its hash is another one, so that no decision and no world without them is taken
 * for one with them. Pure.
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

/** A file that may be written may be read as well, as with the lists of a policy. */
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
