/**
 * Git calls that an allowing rule such as `git *` does not cover: calls that read another folder's settings, or write settings,
 * hooks or repositories from which git runs programs later. A pattern covers such a call by naming the option or the subcommand
 * (`git -C *`, `git clone *`).
 */
import type { CommandWord } from "../words/command.ts";
import { GIT_VALUES } from "../wrappers/git-table.ts";
import type { StagePattern } from "./pattern.ts";
import type { PreparedCommand } from "./prepare.ts";

/** Global options that change neither the settings that git reads nor its programs; every other option may. */
const MANNERS: ReadonlySet<string> = new Set(
  `--no-pager -P --no-replace-objects --no-optional-locks --literal-pathspecs --glob-pathspecs --noglob-pathspecs
  --icase-pathspecs --no-lazy-fetch --no-advice --version -v --help -h`.split(/\s+/),
);

/** Subcommands that write settings or repositories, answer for another repository, or run programs named by words or a file. */
const LOADING: ReadonlySet<string> = new Set(
  [
    // Settings, and repositories with settings of their own.
    "config remote clone init init-db submodule worktree maintenance scalar for-each-repo",
    // With a path as the remote, another repository runs its hooks.
    "push send-pack receive-pack upload-pack upload-archive http-backend daemon shell",
    // Run programs and scripts named by words, settings or a file.
    "bisect filter-branch difftool mergetool hook credential fsmonitor--daemon instaweb send-email imap-send request-pull",
    "web--browse help p4 svn cvsimport cvsexportcommit cvsserver archimport quiltimport fast-import remote-ext remote-fd",
    // A nested repository becomes a part of the index, and `git status` enters the repository.
    "update-index",
  ].flatMap((names) => names.split(" ")),
);

/** Forms of a {@link LOADING} subcommand that only read. */
interface ReadingForms {
  /** Accepted first words, options skipped; null: options only. */
  readonly words: readonly (string | null)[];
  /** With such an option any words may follow. */
  readonly options?: RegExp;
  /** Pattern for a lone word, options skipped, as `git config user.name`. */
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
/** Further options that a reading form may have. */
const READING_OPTIONS =
  /^(-v|--verbose|--global|--local|--system|--show-origin|--show-scope|--name-only|--null|-z|--includes|--type=[a-z-]+|--all|--push|--porcelain|--cached|--recursive|-n)$/;

/** Whether the command runs or loads code that the words matched by the pattern do not name. */
export function isMoreThanSaid(stage: StagePattern, command: PreparedCommand): boolean {
  return command.tampered || (command.names.includes("git") && isMoreGit(stage, command));
}

function isMoreGit(stage: StagePattern, { command, folder, where }: PreparedCommand): boolean {
  // Repository settings name programs: a repository that a command may have created is not covered by the rule.
  if (folder === null || where.isForeignGit?.(folder) === true) return true;
  const { options, subcommand, rest } = partsOf(command.words);
  const choosing = options.filter((option) => !MANNERS.has(option));
  // For a repeated option, the pattern's value is compared with the last value only.
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
