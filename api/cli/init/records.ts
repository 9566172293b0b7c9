/** What `substrate init` wrote, and when: one record for each agent and place, with copies of the files before. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { replaceFile } from "../../../broker/allow/policy-file.ts";
import type { Home } from "../../../broker/settings/home.ts";
import { Complaint } from "../terminal/terminal.ts";
import { hashOf } from "./files.ts";
import type { Part } from "./parts.ts";

/** Hash of the text before; `null`: there was no file; `mixed`: it had parts of ours among a person's later changes. */
export type Before = string | null;
export const MIXED = "mixed";

export type ConnectedFile = {
  readonly path: string;
  readonly target: string;
  readonly before: Before;
  /** Hash of what was written. */
  readonly after: string;
  readonly parts: readonly Part[];
  /** Folders that were made for it, the outermost first. */
  readonly made: readonly string[];
};

export type Connection = {
  readonly agent: string;
  /** Null: a person's own settings. */
  readonly project: string | null;
  readonly since: string;
  readonly files: readonly ConnectedFile[];
};

/** Reads all records, by agent. A record that cannot be read is left out. */
export function connections(home: Home): readonly Connection[] {
  if (!existsSync(home.connections)) return [];
  return readdirSync(home.connections)
    .filter((name) => name.endsWith(".json"))
    .sort()
    .flatMap((name) => parsed(join(home.connections, name)) ?? []);
}

/** Throws {@link Complaint} for a record that cannot be read: another one in its place would lose the copies. */
export function connectionOf(home: Home, agent: string, project: string | null): Connection | undefined {
  const path = recordPath(home, agent, project);
  if (!existsSync(path)) return undefined;
  const connection = parsed(path);
  if (connection !== undefined) return connection;
  throw new Complaint(`'${path}' cannot be read: it is no record of a connection. Remove it to begin anew`);
}

function parsed(path: string): Connection | undefined {
  try {
    const connection = JSON.parse(readFileSync(path, "utf8")) as Partial<Connection> | null;
    const isWhole = typeof connection?.agent === "string" && Array.isArray(connection.files);
    return isWhole ? (connection as Connection) : undefined;
  } catch {
    return undefined;
  }
}

/** Keeps a text by its hash. */
export function keepCopy(home: Home, text: string): string {
  const hash = hashOf(text);
  mkdirSync(copiesFolder(home), { recursive: true, mode: 0o700 });
  const path = copyPath(home, hash);
  if (!existsSync(path)) writeFileSync(path, text, { mode: 0o600 });
  return hash;
}

/** Reads a kept text; undefined for a lost or changed copy. */
export function keptCopy(home: Home, hash: string): string | undefined {
  const path = copyPath(home, hash);
  if (!existsSync(path)) return undefined;
  const text = readFileSync(path, "utf8");
  return hashOf(text) === hash ? text : undefined;
}

export function writeConnection(home: Home, connection: Connection): void {
  mkdirSync(copiesFolder(home), { recursive: true, mode: 0o700 });
  const path = recordPath(home, connection.agent, connection.project);
  const before = existsSync(path) ? readFileSync(path, "utf8") : null;
  replaceFile(path, before, `${JSON.stringify(connection, null, 2)}\n`);
}

/** Removes a record, and copies that no other record names. */
export function forgetConnection(home: Home, { agent, project }: Connection): void {
  rmSync(recordPath(home, agent, project), { force: true });
  const needed = new Set(connections(home).flatMap(({ files }) => files.map(({ before }) => before)));
  if (!existsSync(copiesFolder(home))) return;
  for (const name of readdirSync(copiesFolder(home)))
    if (!needed.has(name)) rmSync(copyPath(home, name), { force: true });
}

function recordPath(home: Home, agent: string, project: string | null): string {
  const place = project === null ? "" : `-${hashOf(project).slice(0, 16)}`;
  return join(home.connections, `${agent}${place}.json`);
}

function copiesFolder(home: Home): string {
  return join(home.connections, "copies");
}

function copyPath(home: Home, hash: string): string {
  return join(copiesFolder(home), hash);
}
