/**
 * Default deny lists: a policy without `fs.deny_read` or `fs.deny_write` gets these rows, and a present list replaces them. Each
 * row has its reason; the shipped policies write the rows out for people to edit.
 */
import { ACCOUNTS } from "./denied-accounts.ts";
import { CREDENTIALS } from "./denied-credentials.ts";

export type Denial = { readonly path: string; readonly reason: string };

/** Credentials, and personal data of applications. */
export const DENIED_READS: readonly Denial[] = [...CREDENTIALS, ...ACCOUNTS];

/** Files in any kind of git folder that make git run a program, or read settings from elsewhere. */
const GIT_RUNS: readonly Denial[] = [
  { path: "hooks", reason: "git runs these programs by itself" },
  { path: "config", reason: "names pagers, editors, filters, aliases, helpers and monitors, which git runs" },
  { path: "config.worktree", reason: "a second git config, which git reads after the first" },
  { path: "commondir", reason: "says in which other folder git finds hooks and config" },
];

/** Each worktree's own folder below the git folder, and submodules' folders, which nest. */
const OTHERS = ["worktrees/*/", "modules/**/"] as const;

/** Every repository's git folder at or below the project, including bare repositories named `*.git`. */
const EACH_GIT_FOLDER = "$PROJECT/**/*.git";

/**
 * Git's ways to run code; isolated commands may write such names, and the changes are held (held-names.ts). Other files of a
 * project that tools run by themselves are listed as `autorun` when changed.
 */
export const DENIED_WRITES: readonly Denial[] = gitRows("$PROJECT/.git", [""]);

/**
 * The same rows in every existing repository, and in the folders of its worktrees and submodules: an agent in an outer folder
 * must not change the programs that git runs for a person in an inner folder. A command may make a new repository (`git init`,
 * `git worktree add`): the same command makes the working tree that leads there, and could lead to any other folder as well.
 */
export const SEALED_WRITES: readonly Denial[] = gitRows(EACH_GIT_FOLDER, ["", ...OTHERS]);

/** State of an unfinished rebase or cherry-pick, which names programs for git to run on `--continue`. */
const UNFINISHED = ["rebase-merge", "rebase-apply", "sequencer"] as const;

/**
 * Returns the same rows for the git folder of a worktree or a submodule. A worktree shares the git folder with other people's
 * working trees: there `git rebase --continue` runs the programs listed in `rebase-merge`, and submodules have git folders in
 * `modules`.
 *
 * @param folder a pattern for the git folder alone; likewise `others`, the folders of worktrees outside the project.
 */
export function deniedInGitFolder(
  folder: string,
  { shared, others }: { readonly shared: boolean; readonly others: readonly string[] },
): readonly string[] {
  return [
    ...pathsOf(gitRows(folder, [""])),
    `${folder}/info/attributes`,
    ...(shared ? [...UNFINISHED, "modules"].map((name) => `${folder}/${name}`) : []),
    ...others.flatMap((other) => OF_OTHERS.map((name) => `${other}/${name}`)),
  ];
}

/** `git gc` and `git branch -m` write everything else in the folder of another person's worktree. */
const OF_OTHERS = [...UNFINISHED, "modules", "gitdir"] as const;

/** Returns the seals in the folders of other worktrees and of submodules. */
export function sealedInGitFolder(folder: string): readonly string[] {
  return pathsOf(gitRows(folder, OTHERS));
}

/** Returns all seals for a git folder in the project with a name that no list covers. */
export function sealedInside(folder: string): readonly string[] {
  return pathsOf(gitRows(folder, ["", ...OTHERS]));
}

/** Returns the settings files directly in a git folder. */
export function settingsIn(folder: string): readonly string[] {
  return [`${folder}/config`, `${folder}/config.worktree`];
}

/** Selects the settings files among sealed patterns. */
export function settingsAmong(seals: readonly string[]): readonly string[] {
  return seals.filter((pattern) => /\/config(?:\.worktree)?$/.test(pattern));
}

/**
 * Whether a denial is a row of `DENIED_WRITES` for the project. For commands that write straight to the project, such a row is a
 * seal, as for the repositories below: a repository made by a command gets its settings and sample hooks, and the broker judges
 * the repository when the command ends (git/brought.ts).
 */
export function isOwnGitRow(pattern: string, project: string): boolean {
  return gitRows(`${project}/.git`, [""]).some(({ path }) => path === pattern);
}

export function pathsOf(rows: readonly Denial[]): readonly string[] {
  return rows.map(({ path }) => path);
}

function gitRows(folder: string, places: readonly string[]): readonly Denial[] {
  return places.flatMap((within) =>
    GIT_RUNS.map(({ path, reason }) => ({ path: `${folder}/${within}${path}`, reason })),
  );
}
