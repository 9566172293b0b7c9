/** The place of a call, and its session. */

export type Place = {
  readonly project: string;
  readonly cwd: string;
  /** Device and inode of the project folder. */
  readonly identity: string;
};

export type Session = {
  readonly id: string;
  readonly agent: string;
  readonly project: string;
  /** The caller's own name of it (`session_key`); absent: the session of every call without one. */
  readonly key?: string;
};

/** Whether the caller may see an agent's data; null stands for data of the operator alone. */
export type Visible = (agent: string | null) => boolean;
