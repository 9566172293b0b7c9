import { type CommandWord, UNKNOWN_MARK } from "../words/command.ts";
import {
  GIT_COMMANDS,
  GIT_VALUES,
  type GitCommand,
  IDLE_VALUE,
  MEANING_SETTINGS,
  OPAQUE_SETTINGS,
  PLAIN_MEANING,
  RUN_SETTINGS,
} from "./git-table.ts";
import { asShellText, type Inner, scriptOf } from "../words/inner.ts";
import { hasUnknownName, mayBeOption, unknownOption } from "../words/unknown-options.ts";
import { isAdded } from "./wrapper-options.ts";

/** Most aliases of a name that are read: each repeats all words of the call. Further aliases are only opaque. */
const MAX_ALIASES = 4;
const MANY_ALIASES: Inner = {
  kind: "opaque",
  reason: `A name may have at most ${MAX_ALIASES} git aliases on a command line; this one has more`,
};

/** Returns the commands that a git call runs through settings, aliases and options. */
export function unwrapGit(words: readonly CommandWord[]): Inner[] {
  const { settings, opaque, subcommand } = globalsOf(words);
  const named = words[subcommand]?.text ?? "";
  const globals = words.slice(0, subcommand);
  const args = words.slice(subcommand + 1);
  const aliases = settings.filter((setting) => isAlias(setting, named));
  return [
    ...opaque,
    ...settings.flatMap((setting) => readSetting(setting)),
    ...aliases.slice(0, MAX_ALIASES).flatMap((setting) => aliasOf(setting, globals, args)),
    ...(aliases.length > MAX_ALIASES ? [MANY_ALIASES] : []),
    ...optionsRun(GIT_COMMANDS.get(named), args),
  ];
}

interface GitGlobals {
  readonly settings: readonly CommandWord[];
  readonly opaque: readonly Inner[];
  /** Index of the subcommand; past the end if absent. */
  readonly subcommand: number;
}

function globalsOf(words: readonly CommandWord[]): GitGlobals {
  const settings: CommandWord[] = [];
  const opaque: Inner[] = [];
  let at = 1;
  for (; at < words.length; at += 1) {
    const word = words[at];
    if (word?.text.startsWith("-") !== true) break;
    const { text } = word;
    const value = words[at + 1];
    if (text === "-c" && value !== undefined) settings.push(value);
    if (hasUnknownName(word)) opaque.push(unknownOption(word, "git"));
    if (text.startsWith("--config-env") || text.startsWith("--exec-path="))
      opaque.push({
        kind: "opaque",
        reason: `The commands that git runs because of '${text}' are only known when the command runs`,
      });
    // `xargs git -C`: the value and further words are added.
    if (GIT_VALUES.has(text) && value !== undefined && isAdded(value))
      opaque.push(unknownOption(value, "git"));
    at += GIT_VALUES.has(text) ? 1 : 0;
  }
  const named = words[at];
  // `x=-c; git "$x" alias.z=!id z`. A single last word that cannot vanish is a subcommand, or runs no command.
  if (named !== undefined && mayBeOption(named) && (at < words.length - 1 || named.vanishes === true))
    opaque.push(unknownOption(named, "git"));
  return { settings, opaque, subcommand: at };
}

/** Reads `name=value`, as after `git -c`. */
function readSetting(setting: CommandWord): Inner[] {
  const equals = setting.text.indexOf("=");
  const name = equals < 0 ? setting.text : setting.text.slice(0, equals);
  if (name.includes(UNKNOWN_MARK))
    return [
      {
        kind: "opaque",
        reason: `The git setting named by '${setting.raw}' is only known when the command runs`,
      },
    ];
  // Without a `=`, git sets the name to true.
  return gitSetting(name, { ...setting, text: equals < 0 ? "true" : setting.text.slice(equals + 1) });
}

/** Returns the commands that git runs because of a setting. Aliases for git's own commands run nothing new. */
export function gitSetting(written: string, value: CommandWord): Inner[] {
  const name = written.toLowerCase();
  const mayBeShell = value.text.startsWith("!") || value.text.startsWith(UNKNOWN_MARK);
  if (name.startsWith("alias.")) return mayBeShell ? shellText(value, []) : [];
  if (MEANING_SETTINGS.test(name) && !PLAIN_MEANING.test(value.text))
    return [
      {
        kind: "opaque",
        reason: `The setting '${written}' may make git do something else than the command says`,
      },
    ];
  // `always` and `user` are what permits an address that holds a command.
  if (name.startsWith("protocol.") ? value.text === "never" : IDLE_VALUE.test(value.text)) return [];
  if (OPAQUE_SETTINGS.test(name))
    return [
      { kind: "opaque", reason: `The setting '${written}' may make git run commands that cannot be checked` },
    ];
  if (!RUN_SETTINGS.test(name)) return [];
  // Without `!`, the values name git's own helpers: `store` is git-credential-store, `rebase` a way to update.
  const isOwn = /helper$|update$/.test(name) && !/^[!/]/.test(value.text);
  return isOwn ? [] : shellText(value, []);
}

/** Adds `"$@"`: git appends its own words, or the caller's, to the command. */
function shellText(value: CommandWord, args: readonly CommandWord[]): Inner[] {
  const text = [value.text.replace(/^!/, ""), ...args.map(quoted), '"$@"'].join(" ");
  return scriptOf([{ ...value, text }], "sh", "git");
}

function isAlias(setting: CommandWord, named: string): boolean {
  return setting.text.toLowerCase().startsWith(`alias.${named.toLowerCase()}=`);
}

/** Expands `git -c alias.x=… x` with the words behind. */
function aliasOf(
  setting: CommandWord,
  globals: readonly CommandWord[],
  args: readonly CommandWord[],
): Inner[] {
  const value = { ...setting, text: setting.text.slice(setting.text.indexOf("=") + 1) };
  if (value.text.startsWith("!")) return args.length === 0 ? [] : shellText(value, args);
  const text = [...globals.map(quoted), value.text, ...args.map(quoted)].join(" ");
  return scriptOf([{ ...value, text }], "sh", "git");
}

function quoted(word: CommandWord): string {
  return word.kind === "dynamic"
    ? `"${asShellText(word.text).replaceAll(/["`\\]/g, "")}"`
    : `'${word.text.replaceAll("'", "'\\''")}'`;
}

function optionsRun(command: GitCommand | undefined, args: readonly CommandWord[]): Inner[] {
  if (command === undefined) return [];
  const behind = command.after === undefined ? -1 : args.findIndex((word) => word.text === command.after);
  const found = args.flatMap((word, at) => optionRuns(command, word, args[at + 1]));
  return behind < 0 ? found : [...found, ...commandAfter(args.slice(behind + 1))];
}

/** Reads a single word as a command string, several as a program and its words. */
function commandAfter(words: readonly CommandWord[]): Inner[] {
  const from = words.findIndex((word) => !word.text.startsWith("-"));
  const rest = from < 0 ? [] : words.slice(from);
  if (rest.length === 1) return scriptOf(rest, "sh", "git");
  return rest.length === 0 ? [] : [{ kind: "words", words: rest }];
}

function optionRuns(command: GitCommand, word: CommandWord, next: CommandWord | undefined): Inner[] {
  const value = (names: readonly string[] | undefined): CommandWord | undefined =>
    optionValue(names ?? [], word, next);
  if (hasUnknownName(word)) return [unknownOption(word, "git")];
  const { attached } = command;
  if (attached !== undefined && word.text.startsWith(attached) && word.text.length > attached.length)
    return shellText({ ...word, text: word.text.slice(attached.length) }, []);
  const runs = value(command.runs);
  if (runs !== undefined) return shellText(runs, []);
  const setting = value(command.settings);
  if (setting !== undefined) return readSetting(setting);
  if (value(command.opaque) === undefined || IDLE_VALUE.test(value(command.opaque)?.text ?? "")) return [];
  return [{ kind: "opaque", reason: `'${word.raw}' may make git run commands that cannot be checked` }];
}

/** Returns the value of `-x VALUE`, `-xVALUE`, `--exec VALUE`, `--exec=VALUE` and `--exe VALUE`. */
export function optionValue(
  names: readonly string[],
  word: CommandWord,
  next: CommandWord | undefined,
): CommandWord | undefined {
  const equals = word.text.startsWith("--") ? word.text.indexOf("=") : -1;
  const given = equals < 0 ? word.text : word.text.slice(0, equals);
  for (const name of names) {
    const isLong = name.startsWith("--");
    if (isLong && given.length > 3 && name.startsWith(given))
      return equals < 0 ? next : { ...word, text: word.text.slice(equals + 1) };
    if (isLong) continue;
    // `git rebase -ix CMD`: the last of several letters.
    if (/^-[a-zA-Z]{2,}$/.test(word.text) && word.text.endsWith(name.slice(1))) return next;
    if (!word.text.startsWith(name)) continue;
    return word.text === name ? next : { ...word, text: word.text.slice(name.length) };
  }
  return undefined;
}
