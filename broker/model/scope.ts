/** Scopes that a token gives one command beyond its policies. */
import type { Allowed } from "../network/names/entries.ts";
import type { Effective } from "./effective.ts";

/** Scopes in force for one command. */
export type UsedScopes = {
  readonly token: string;
  readonly scopes: readonly Scope[];
  readonly texts: readonly string[];
  /** The policies including the scopes. */
  readonly effective: Effective;
  readonly approval: string | null;
};

/** A grantable scope. */
export type Scope = PlacedScope | NetScope;

/** A file scope with its resolved place. */
export type PlacedScope = {
  /** The scope as requested, for resolving again. */
  readonly named: NamedScope;
  readonly kind: FileScopeKind;
  /** The real path. */
  readonly path: string;
  readonly type: "folder" | "file";
  /** Device and inode: a new file at the same path was not granted. */
  readonly identity: string;
  readonly owner: number;
};

export type FileScopeKind = "fs.read" | "fs.write";

/** `path` is absolute and normal; `below` says that the text ended in `/**`. */
export type NamedScope = {
  readonly asked: string;
  readonly kind: FileScopeKind;
  readonly path: string;
  readonly below: boolean;
};

/** A network scope's entry: like an entry of `net.allowed`, but never a pattern. */
export type Opened = Extract<Allowed, { kind: "name" | "range" }>;

export type NetScope = {
  readonly kind: "net";
  readonly asked: string;
  readonly opens: Opened;
  readonly port: number;
};
