/** Sessions as coding agents name them (`session_key`): when they began and ended, and under which span their commands stand. */
import type { Database, RootDatabase } from "lmdb";
import { AgentQuota } from "../model/agent-quota.ts";
import type { OnFault } from "../spans/span-index.ts";
import { databaseKey } from "./marks.ts";

export type AgentSession = {
  readonly agent: string;
  readonly key: string;
  /** One for each project, the oldest first. */
  readonly ids: readonly string[];
  /** Times are those of spans. */
  readonly began: string;
  readonly prompted: string | null;
  readonly ended: string | null;
  /** The span of its beginning; null when the agent told none. */
  readonly start: string | null;
  /** The span of its last prompt, else of its beginning: the parent of what follows. */
  readonly parent: string | null;
  readonly active: string;
};

export type AgentSessionQuery = {
  readonly agent: string | undefined;
  readonly key: string | undefined;
  readonly limit: number;
  readonly sees: (agent: string) => boolean;
};

/** An event of the session, or its command (`undefined`). */
type Moment = {
  readonly event: "session_start" | "session_end" | "prompt" | "stop" | "tool" | undefined;
  readonly span: string | null;
  readonly at: string;
  /** Null outside every project. */
  readonly id: string | null;
};

/** Sessions that are kept, of an agent and of all labels. The one inactive for longest goes first. */
const MOST = { ofAgent: 500, ofLabels: 2000 };

/** Projects of one session that are kept. */
const MAX_IDS = 64;

export class AgentSessions {
  /** The last active one comes last. */
  readonly #all = new Map<string, AgentSession>();
  readonly #stored: Database<AgentSession, string>;
  readonly #onFault: OnFault;
  readonly #quota: AgentQuota;

  constructor(database: RootDatabase, onFault: OnFault, isLabel: (agent: string) => boolean) {
    this.#onFault = onFault;
    this.#quota = new AgentQuota(MOST, isLabel);
    this.#stored = database.openDB({ name: "agent-sessions" });
    const all = [...this.#stored.getRange().map(({ value }) => value)];
    all.sort((one, other) => (one.active < other.active ? -1 : 1));
    for (const session of all) this.#set(nameOf(session.agent, session.key), session);
  }

  of(agent: string, key: string | undefined): AgentSession | undefined {
    return key === undefined ? undefined : this.#all.get(nameOf(agent, key));
  }

  /** Notes an event or a command. A command of a known session is noted in memory alone, because it is on the path of each call. */
  note(agent: string, key: string, moment: Moment): void {
    const name = nameOf(agent, key);
    const before = this.#all.get(name);
    const after = noted(before ?? begun(agent, key, moment), moment);
    this.#set(name, after);
    const isStored = before !== undefined && moment.event === undefined && after.ids === before.ids;
    if (!isStored) this.#write(this.#stored.put(databaseKey(name), after));
  }

  #set(name: string, session: AgentSession): void {
    this.#all.delete(name);
    this.#all.set(name, session);
    const gone = this.#quota.use(name, session.agent);
    if (gone === undefined) return;
    this.#all.delete(gone);
    this.#write(this.#stored.remove(databaseKey(gone)));
  }

  /** The last active one first. */
  list({ agent, key, limit, sees }: AgentSessionQuery): readonly AgentSession[] {
    return [...this.#all.values()]
      .reverse()
      .filter(
        (each) =>
          (agent === undefined || each.agent === agent) &&
          (key === undefined || each.key === key) &&
          sees(each.agent),
      )
      .slice(0, limit);
  }

  #write(write: Promise<boolean>): void {
    write.catch((error: unknown) => this.#onFault("Cannot keep an agent's session", error));
  }
}

function nameOf(agent: string, key: string): string {
  return `${agent}\0${key}`;
}

function begun(agent: string, key: string, { at }: Moment): AgentSession {
  const unknown = { prompted: null, ended: null, start: null, parent: null };
  return { agent, key, ids: [], began: at, ...unknown, active: at };
}

function noted(before: AgentSession, { event, span, at, id }: Moment): AgentSession {
  const isNew = id !== null && !before.ids.includes(id);
  const session = { ...before, ids: isNew ? [...before.ids, id].slice(-MAX_IDS) : before.ids, active: at };
  if (event === "prompt") return { ...session, prompted: at, ended: null, parent: span };
  if (event === "session_end") return { ...session, ended: at };
  if (event !== "session_start") return session;
  // An agent tells a beginning again when it compacts a session that goes on: its commands belong to the last prompt.
  const isOpen = before.parent !== null && before.ended === null;
  return { ...session, ended: null, start: span, parent: isOpen ? before.parent : span };
}
