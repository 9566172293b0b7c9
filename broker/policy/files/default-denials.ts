/**
 * What a policy denies that has no list of its own. An absent `fs.deny_read` or `fs.deny_write` gives these; a list that is
 * there means what it says. Each row has its reason; the shipped policies write the rows out for people to edit.
 */
import { ACCOUNTS } from "./denied-accounts.ts";
import { CREDENTIALS } from "./denied-credentials.ts";

export type Denial = { readonly path: string; readonly reason: string };

/** Credentials, and what applications keep for a person. */
export const DENIED_READS: readonly Denial[] = [...CREDENTIALS, ...ACCOUNTS];

/** What makes git run a program, or take its settings from elsewhere, in every kind of git folder. */
const GIT_RUNS: readonly Denial[] = [
  { path: "hooks", reason: "git runs these programs by itself" },
  { path: "config", reason: "its pagers, editors, filters, aliases, helpers and monitors are programs" },
  { path: "config.worktree", reason: "a second config, read after the first" },
  { path: "commondir", reason: "it says in which other folder hooks and config are" },
];

/** Each worktree's own folder below the git folder, and those of submodules, which nest. */
const OTHERS = ["worktrees/*/", "modules/**/"] as const;

/** Every repository's git folder at or below the project, bare ones that are called so included. */
const EACH_GIT_FOLDER = "$PROJECT/**/*.git";

/** Git's ways to run code; an isolated command's are held (held-names.ts). What else runs by itself in a project is listed as `autorun` when it changes. */
export const DENIED_WRITES: readonly Denial[] = gitRows("$PROJECT/.git", [""]);

/**
 * The same in every repository that is there, and in the folders of its worktrees and submodules: whoever works in the folder
 * above must not change what git runs for the person who works in one below. A new one may be made (`git init`, `git worktree
 * add`): the working tree that leads to it is made by the same command, and could lead to any other folder as well.
 */
export const SEALED_WRITES: readonly Denial[] = gitRows(EACH_GIT_FOLDER, ["", ...OTHERS]);

/** What an unfinished rebase does when it goes on: programs are among that. */
const UNFINISHED = ["rebase-merge", "rebase-apply"] as const;

/**
 * The same for the git folder of a worktree or a submodule. A worktree shares it with working trees of somebody else's: there
 * `git rebase --continue` runs the programs that `rebase-merge` lists, and submodules have git folders in `modules`.
 *
 * @param folder a pattern that matches it alone, as `others` are: the folders of worktrees that are not the project's.
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

/** All else in the folder of somebody else's worktree is written by `git gc` and `git branch -m`. */
const OF_OTHERS = [...UNFINISHED, "modules", "gitdir"] as const;

/** And what stands in the folders of other worktrees, and of submodules. */
export function sealedInGitFolder(folder: string): readonly string[] {
  return pathsOf(gitRows(folder, OTHERS));
}

/** All of it, for a git folder in the project whose name no list covers. */
export function sealedInside(folder: string): readonly string[] {
  return pathsOf(gitRows(folder, ["", ...OTHERS]));
}

/** The settings that stand directly in a git folder. */
export function settingsIn(folder: string): readonly string[] {
  return [`${folder}/config`, `${folder}/config.worktree`];
}

/** Those of sealed patterns that are settings. */
export function settingsAmong(seals: readonly string[]): readonly string[] {
  return seals.filter((pattern) => /\/config(?:\.worktree)?$/.test(pattern));
}

/**
 * Whether a denial is a row of `DENIED_WRITES` for that project. Where commands write straight to the project such a row is a seal,
 * as it is for the repositories below: a repository that a command makes gets its settings and its samples of hooks, and is judged
 * when the command ends (git-brought.ts).
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
