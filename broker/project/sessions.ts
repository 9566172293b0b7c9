import type { Session } from "../model/place.ts";
import type { Database, RootDatabase } from "lmdb";
import { newId } from "../model/ids.ts";
import type { OnFault } from "../spans/span-index.ts";
import { databaseKey } from "./marks.ts";

/** Longest valid id; LMDB throws at keys of more than 1,978 bytes. */
const MAX_ID = 128;

/** The broker's sessions: one per agent and project, stored, so that ids stay valid after a restart. */
export class Sessions {
  readonly #byId: Database<Session, string>;
  readonly #current: Database<string, string>;
  readonly #onFault: OnFault;
  readonly #warm = new Map<string, Session>();
  /** Sessions made by this process, by id: LMDB returns a write only after its commit. */
  readonly #made = new Map<string, Session>();
  readonly #projects: Set<string>;

  constructor(database: RootDatabase, onFault: OnFault) {
    this.#onFault = onFault;
    this.#byId = database.openDB({ name: "sessions" });
    this.#current = database.openDB({ name: "current-sessions" });
    this.#projects = new Set(this.#byId.getRange().map(({ value }) => value.project));
  }

  /** Returns the session of an agent in a project, created at the first call. */
  of(agent: string, project: string): Session {
    const key = `${agent}\0${project}`;
    const warm = this.#warm.get(key) ?? this.#stored(key) ?? this.#make(key, agent, project);
    this.#warm.set(key, warm);
    return warm;
  }

  /** Whether a folder (a real path) was the project of any session, also in earlier brokers. */
  wasProject(folder: string): boolean {
    return this.#projects.has(folder);
  }

  find(id: string): Session | undefined {
    return id.length > MAX_ID ? undefined : (this.#made.get(id) ?? this.#byId.get(id));
  }

  #stored(key: string): Session | undefined {
    const id = this.#current.get(databaseKey(key));
    return id === undefined ? undefined : this.#byId.get(id);
  }

  #make(key: string, agent: string, project: string): Session {
    const session = { id: newId("ses"), agent, project };
    this.#made.set(session.id, session);
    this.#projects.add(project);
    const writes = [this.#byId.put(session.id, session), this.#current.put(databaseKey(key), session.id)];
    for (const write of writes)
      write.catch((error: unknown) => this.#onFault("Cannot keep a session", error));
    return session;
  }
}
