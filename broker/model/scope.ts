/** What a scope token can give one command beyond its policies. */
import type { Allowed } from "../network/names/entries.ts";
import type { Effective } from "./effective.ts";

/** Scopes that hold for one command. */
export type UsedScopes = {
  readonly token: string;
  readonly scopes: readonly Scope[];
  readonly texts: readonly string[];
  /** What holds with them. */
  readonly effective: Effective;
  readonly approval: string | null;
};

/** What can be granted. */
export type Scope = PlacedScope | NetScope;

/** A scope of files and the place that it stands for. */
export type PlacedScope = {
  /** As it was asked for: where to look again. */
  readonly named: NamedScope;
  readonly kind: FileScopeKind;
  /** The real path. */
  readonly path: string;
  readonly type: "folder" | "file";
  /** Device and inode: another one under the same name was not granted. */
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

/** What one scope opens: as an entry of `net.allowed` does, and never by a pattern. */
export type Opened = Extract<Allowed, { kind: "name" | "range" }>;

export type NetScope = {
  readonly kind: "net";
  readonly asked: string;
  readonly opens: Opened;
  readonly port: number;
};
