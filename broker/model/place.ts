/** Where a call works, and the session that it belongs to. */

export type Place = {
  readonly project: string;
  readonly cwd: string;
  /** Device and inode of the project folder. */
  readonly identity: string;
};

export type Session = { readonly id: string; readonly agent: string; readonly project: string };

/** Whether the caller may see what belongs to an agent; to null belongs what is the operator's alone. */
export type Visible = (agent: string | null) => boolean;
