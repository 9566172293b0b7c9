/**
 * What a rule that allows does not cover when it says no more than `git *`: calls that read the settings of another folder, or
 * that write settings, hooks or repositories, from which git runs programs later. A pattern covers them by naming the option
 * or the subcommand (`git -C *`, `git clone *`).
 */
import type { CommandWord } from "../words/command.ts";
import { GIT_VALUES } from "../wrappers/git-table.ts";
import type { StagePattern } from "./pattern.ts";
import type { PreparedCommand } from "./prepare.ts";

/** Global options that choose which settings are read or which programs git is made of; others only change its manners. */
const MANNERS: ReadonlySet<string> = new Set(
  `--no-pager -P --no-replace-objects --no-optional-locks --literal-pathspecs --glob-pathspecs --noglob-pathspecs
  --icase-pathspecs --no-lazy-fetch --no-advice --version -v --help -h`.split(/\s+/),
);

/** Subcommands that write settings or repositories, answer for another repository, or run what their words or a file say. */
const LOADING: ReadonlySet<string> = new Set(
  [
    // Settings, and repositories that bring their own.
    "config remote clone init init-db submodule worktree maintenance scalar for-each-repo",
    // Another repository runs its hooks: a path stands where a remote does.
    "push send-pack receive-pack upload-pack upload-archive http-backend daemon shell",
    // Programs and scripts of the words, of settings, or of a file.
    "bisect filter-branch difftool mergetool hook credential fsmonitor--daemon instaweb send-email imap-send request-pull",
    "web--browse help p4 svn cvsimport cvsexportcommit cvsserver archimport quiltimport fast-import remote-ext remote-fd",
    // A nested repository becomes a part of the index, and `git status` enters it.
    "update-index",
  ].flatMap((names) => names.split(" ")),
);

/** What of those only reads. */
interface ReadingForms {
  /** The first word that is no option; null: there is none. */
  readonly words: readonly (string | null)[];
  /** With one of these options any words may follow. */
  readonly options?: RegExp;
  /** One word that is no option, as `git config user.name`. */
  readonly one?: RegExp;
}

const READING: ReadonlyMap<string, ReadingForms> = new Map([
  [
    "config",
    {
      words: ["get", "list"],
      options: /^(--get|--get-all|--get-regexp|--get-urlmatch|--list|-l)$/,
      one: /^[\w-]+\./,
    },
  ],
  ["remote", { words: [null, "show", "get-url"] }],
  ["submodule", { words: [null, "status"] }],
  ["worktree", { words: ["list"] }],
  ["bisect", { words: ["log"] }],
]);
/** Options that such a form may have besides. */
const READING_OPTIONS =
  /^(-v|--verbose|--global|--local|--system|--show-origin|--show-scope|--name-only|--null|-z|--includes|--type=[a-z-]+|--all|--push|--porcelain|--cached|--recursive|-n)$/;

/** Whether the command runs or loads what its words, as far as the pattern says them, do not name. */
export function isMoreThanSaid(stage: StagePattern, command: PreparedCommand): boolean {
  return command.tampered || (command.names.includes("git") && isMoreGit(stage, command));
}

function isMoreGit(stage: StagePattern, { command, folder, where }: PreparedCommand): boolean {
  // The settings of a repository are programs: those of one that a command may have made are not what was allowed.
  if (folder === null || where.isForeignGit?.(folder) === true) return true;
  const { options, subcommand, rest } = partsOf(command.words);
  const choosing = options.filter((option) => !MANNERS.has(option));
  // Of one that is there twice the pattern speaks of the last alone.
  if (choosing.length > new Set(choosing).size) return true;
  if (choosing.some((option) => !stage.own.options.has(option))) return true;
  if (subcommand === undefined) return false;
  if (subcommand.kind !== "literal") return true;
  const named = stage.own.operands[0]?.word;
  const isSpelled = named?.kind === "literal" && named.text === subcommand.text;
  return !isSpelled && LOADING.has(subcommand.text) && !isReading(subcommand.text, rest);
}

interface GitParts {
  /** Global options, without their values. */
  readonly options: readonly string[];
  readonly subcommand: CommandWord | undefined;
  readonly rest: readonly CommandWord[];
}

function partsOf(words: readonly CommandWord[]): GitParts {
  const options: string[] = [];
  let at = 1;
  for (; words[at]?.text.startsWith("-") === true; at += 1) {
    const text = words[at]?.text ?? "";
    const equals = text.indexOf("=");
    options.push(equals < 0 ? text : text.slice(0, equals));
    at += GIT_VALUES.has(text) ? 1 : 0;
  }
  return { options, subcommand: words[at], rest: words.slice(at + 1) };
}

function isReading(subcommand: string, rest: readonly CommandWord[]): boolean {
  const forms = READING.get(subcommand);
  if (forms === undefined || rest.some(({ kind }) => kind === "dynamic")) return false;
  const texts = rest.map(({ text }) => text);
  const options = texts.filter((text) => text.startsWith("-"));
  const words = texts.filter((text) => !text.startsWith("-"));
  const [first = null] = words;
  const isMark = (text: string): boolean => forms.options?.test(text) === true;
  const reads =
    options.some(isMark) ||
    forms.words.includes(first) ||
    (words.length === 1 && forms.one?.test(first ?? "") === true);
  return reads && options.every((text) => isMark(text) || READING_OPTIONS.test(text));
}
