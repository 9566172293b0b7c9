/**
 * Starts by which a program does a part of its own work in another process: `git stash` runs `git reset --hard`, with words that no
 * caller chooses. The program was decided about when it started, and a rule about these words means a person or an agent who types
 * them. Each row is word for word, because the same program also starts what its caller wants (`git submodule foreach`, an alias,
 * an editor). Data, and pure.
 */
import type { ProgramStart } from "../../world/backend.ts";
import { baseName } from "./inner.ts";
import { isSystemFile } from "./runner-programs.ts";

interface OwnSteps {
  /** The words behind the program's name and its harmless options. */
  readonly of: readonly string[];
  /** What such a command starts. */
  readonly steps: readonly string[];
}

const GIT: readonly OwnSteps[] = [
  // builtin/stash.c, do_push_stash: after all changes were saved.
  {
    of: ["stash"],
    steps: [
      "reset --hard -q --no-recurse-submodules",
      "clean --force --quiet -d :/",
      "clean --force --quiet -d -x :/",
    ],
  },
  // builtin/worktree.c, add_worktree: fills the folder that it has just made.
  {
    of: ["worktree", "add"],
    steps: ["reset --hard --no-recurse-submodules", "reset --hard --no-recurse-submodules --quiet"],
  },
];

/** How many words each takes. Others may change what the words behind them mean, and make it no step. */
const OPTIONS: ReadonlyMap<string, number> = new Map([
  ...["-C", "-c"].map((option) => [option, 2] as const),
  ...["-p", "-P", "--paginate", "--no-pager", "--no-optional-locks"].map((option) => [option, 1] as const),
]);

/** Whether an installed git starts itself as a step of the command that it runs. */
export function isOwnStep({ starter, files, cut, unread }: ProgramStart): boolean {
  const [{ path, argv }, ...others] = files;
  if (starter === undefined || others.length > 0 || cut || unread !== null) return false;
  if (path === null || !isGit(path) || !isGit(starter.path)) return false;
  const command = withoutOptions(starter.argv.slice(1));
  const step = argv.slice(1).join(" ");
  return GIT.some(({ of, steps }) => of.every((word, at) => command[at] === word) && steps.includes(step));
}

function isGit(path: string): boolean {
  return isSystemFile(path) && baseName(path) === "git";
}

function withoutOptions(words: readonly string[]): readonly string[] {
  const taken = OPTIONS.get(words[0] ?? "");
  return taken === undefined ? words : withoutOptions(words.slice(taken));
}
