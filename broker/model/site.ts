/** Where a world is for. */
export type Site = {
  readonly project: string;
  /** Device and inode: a folder that was made anew under the same name is another project. */
  readonly identity: string;
  /** Files that name a policy: whoever could write them inside would choose their own rules outside. */
  readonly profiles: readonly string[];
  /** Where `.git` is a file. */
  readonly git: GitLink | undefined;
  /** The project's git folder where it lies in the project and is not called `.git`. */
  readonly gitInside?: string | undefined;
  /** What git's settings name in the project: hooks, more settings, programs. */
  readonly gitNamed?: readonly string[];
};

export type GitFolder = {
  /** Real path of the folder with the objects and refs. */
  readonly path: string;
  /** Device and inode. */
  readonly identity: string;
  /** A worktree's: the repository has a working tree of its own elsewhere. */
  readonly shared: boolean;
  /** Folders of worktrees that stand outside of the project: other people's, or other commands'. */
  readonly others: readonly string[];
};

/** A `.git` that is a file. */
export type GitLink = {
  readonly file: string;
  /** What it leads to, when that points back. */
  readonly folder: GitFolder | undefined;
};
