import type { Session } from "../model/place.ts";
import type { Database, RootDatabase } from "lmdb";
import { AgentQuota } from "../model/agent-quota.ts";
import { BoundedMap } from "../model/bounded-map.ts";
import { newId } from "../model/ids.ts";
import type { OnFault } from "../spans/span-index.ts";
import { databaseKey } from "./marks.ts";

/** Longest valid id; LMDB throws at keys of more than 1,978 bytes. */
const MAX_ID = 128;

/** Most sessions that callers named by a key: of an agent, and of all labels. One that has gone begins anew under its key. */
const MOST_KEYED = { ofAgent: 2000, ofLabels: 10_000 };
const MAX_WARM = 1000;

/** The broker's sessions: one per agent, project and key of the caller, stored, so that ids stay valid after a restart. */
export class Sessions {
  readonly #byId: Database<Session, string>;
  readonly #current: Database<string, string>;
  readonly #onFault: OnFault;
  readonly #warm = new Map<string, Session>();
  /** Sessions made by this process, by id: LMDB returns a write only after its commit. */
  readonly #made = new Map<string, Session>();
  readonly #keyedWarm = new BoundedMap<string, Session>(MAX_WARM);
  readonly #keyedMade = new BoundedMap<string, Session>(MAX_WARM);
  readonly #keyed: AgentQuota;
  readonly #projects: Set<string>;

  readonly #onGone: (id: string) => void;

  /** `onGone` gets the id of a session that was evicted. */
  constructor(
    database: RootDatabase,
    onFault: OnFault,
    isLabel: (agent: string) => boolean = () => true,
    onGone: (id: string) => void = () => {},
  ) {
    this.#onFault = onFault;
    this.#onGone = onGone;
    this.#keyed = new AgentQuota(MOST_KEYED, isLabel);
    this.#byId = database.openDB({ name: "sessions" });
    this.#current = database.openDB({ name: "current-sessions" });
    const all = [...this.#byId.getRange().map(({ value }) => value)];
    this.#projects = new Set(all.map(({ project }) => project));
    // In the order of their ids, which begin with their time.
    for (const { id, agent, key } of all) if (key !== undefined) this.#evict(this.#keyed.use(id, agent));
  }

  /** Returns the session of an agent in a project, created at the first call. */
  of(agent: string, project: string, key?: string): Session {
    const name = nameOf(agent, project, key);
    const known = this.known(agent, project, key) ?? this.#make(name, agent, project, key);
    (key === undefined ? this.#warm : this.#keyedWarm).set(name, known);
    if (key !== undefined) this.#evict(this.#keyed.use(known.id, agent));
    return known;
  }

  /** Returns the session if there is one. */
  known(agent: string, project: string, key?: string): Session | undefined {
    const name = nameOf(agent, project, key);
    return (key === undefined ? this.#warm : this.#keyedWarm).get(name) ?? this.#stored(name);
  }

  /** The session whose worlds a session's commands use: a key groups commands, and gives them no world of their own. */
  ofWorlds(session: Session): Session {
    return session.key === undefined ? session : this.of(session.agent, session.project);
  }

  /** Whether a folder (a real path) was the project of any session, also in earlier brokers. */
  wasProject(folder: string): boolean {
    return this.#projects.has(folder);
  }

  find(id: string): Session | undefined {
    if (id.length > MAX_ID) return undefined;
    return this.#made.get(id) ?? this.#keyedMade.get(id) ?? this.#byId.get(id);
  }

  #stored(name: string): Session | undefined {
    const id = this.#current.get(databaseKey(name));
    return id === undefined ? undefined : this.#byId.get(id);
  }

  #make(name: string, agent: string, project: string, key: string | undefined): Session {
    const session = { id: newId("ses"), agent, project, ...(key === undefined ? {} : { key }) };
    (key === undefined ? this.#made : this.#keyedMade).set(session.id, session);
    this.#projects.add(project);
    this.#write([this.#byId.put(session.id, session), this.#current.put(databaseKey(name), session.id)]);
    return session;
  }

  #evict(id: string | undefined): void {
    const gone = id === undefined ? undefined : this.find(id);
    if (id === undefined || gone === undefined) return;
    this.#keyedMade.delete(id);
    const name = nameOf(gone.agent, gone.project, gone.key);
    this.#keyedWarm.delete(name);
    this.#write([this.#byId.remove(id), this.#current.remove(databaseKey(name))]);
    this.#onGone(id);
  }

  #write(writes: readonly Promise<boolean>[]): void {
    for (const write of writes)
      write.catch((error: unknown) => this.#onFault("Cannot keep a session", error));
  }
}

function nameOf(agent: string, project: string, key: string | undefined): string {
  return key === undefined ? `${agent}\0${project}` : `${agent}\0${project}\0${key}`;
}
