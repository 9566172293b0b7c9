/** The project that a world is made for. */
export type Site = {
  readonly project: string;
  /** Device and inode: a recreated folder of the same name is another project. */
  readonly identity: string;
  /** Profile files, which choose policies: write access inside would let a command choose its own rules outside. */
  readonly profiles: readonly string[];
  /** The policy named by the profile file at or above the project, else by one below; undefined without such a file. */
  readonly profile?: string | undefined;
  /** Set when `.git` is a file. */
  readonly git: GitLink | undefined;
  /** Folders of the project in which agents' sessions began. */
  readonly began?: readonly string[];
  /** The project's git folder, when it lies in the project under a name other than `.git`. */
  readonly gitInside?: string | undefined;
  /** Paths in the project named by git's settings: hooks, more settings, programs. */
  readonly gitNamed?: readonly string[];
};

export type GitFolder = {
  /** Real path of the folder with the objects and refs. */
  readonly path: string;
  /** Device and inode. */
  readonly identity: string;
  /** Whether the folder belongs to a worktree: the repository then has its own working tree elsewhere. */
  readonly shared: boolean;
  /** Administrative folders of worktrees outside the project, used by other people or commands. */
  readonly others: readonly string[];
};

/** A `.git` file. */
export type GitLink = {
  readonly file: string;
  /** The linked git folder, if it points back at the file. */
  readonly folder: GitFolder | undefined;
};
