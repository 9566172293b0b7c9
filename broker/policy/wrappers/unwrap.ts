import { type CommandWord, UNKNOWN_MARK } from "../words/command.ts";
import { baseName, type Inner, type Input, scriptOf, type ShellLanguage } from "../words/inner.ts";
import { literalWord } from "../words/read-word.ts";
import { EVALUATORS, isForeignShell, languageOf } from "./shell-table.ts";
import { evaluatedWords } from "./unwrap-builtins.ts";
import { unwrapGit } from "./unwrap-git.ts";
import { replaced, unwrapWrapper } from "./unwrap-programs.ts";
import { unwrapRunner } from "./unwrap-runners.ts";
import { unwrapSed } from "./unwrap-sed.ts";
import { unwrapShell, unwrapSource } from "./unwrap-shell.ts";
import { WRAPPERS } from "./wrapper-table.ts";
import { hasUnknownName, mayBeOption, unknownOption } from "../words/unknown-options.ts";
import { isAdded } from "./wrapper-options.ts";

const PYTHON = /^(python|pypy)[0-9.]*$/;
/** Most aliases that are read; further aliases are only opaque. */
const MAX_ALIASES = 32;
const LOADER = /^(ld-(linux|musl)[^/]*|ld(64)?\.so(\.\d+)?)$/;
const LOADER_OPTIONS = {
  longValues: ["library-path", "preload", "audit", "argv0", "inhibit-rpath", "glibc-hwcaps-prepend"],
};
/** Names of open files or running programs: the content cannot be known from the name. */
const OPEN_PROGRAM = /^\/(dev\/(stdin|fd\/)|proc\/[^/]+\/(task\/[^/]+\/)?(fd\/|exe$|map_files\/))/;

/** Returns the commands that this command runs in turn, a single level. Empty for a plain program. */
export function unwrap(words: readonly CommandWord[], input: Input, shell: ShellLanguage): Inner[] {
  const [program] = words;
  if (program === undefined || program.kind !== "literal") return [];
  if (OPEN_PROGRAM.test(program.text.replaceAll(/\/(\.?\/)+/g, "/")))
    return [
      { kind: "opaque", reason: `The program behind '${program.text}' is only known when the command runs` },
    ];
  const name = baseName(program.text);
  return [...unwrapByName(name, words, input, shell), ...evaluatedWords(name, words)];
}

function unwrapByName(
  name: string,
  words: readonly CommandWord[],
  input: Input,
  shell: ShellLanguage,
): Inner[] {
  const wrapper = WRAPPERS.get(name);
  if (wrapper !== undefined)
    return name === "sudo" || name === "doas"
      ? unwrapSudo(words, unwrapWrapper(words, wrapper, shell))
      : unwrapWrapper(words, wrapper, shell);
  const language = languageOf(name);
  if (language !== undefined) return unwrapShell(words, name, language, input);
  if (isForeignShell(name)) return unwrapForeign(words, name, input);
  if (EVALUATORS.has(name)) return unwrapEvaluator(words, name, shell);
  if (name === "." || name === "source") return unwrapSource(words, shell, input);
  if (name === "alias") return unwrapAlias(words, shell);
  if (name === "find") return unwrapFind(words);
  if (name === "sed" || name === "gsed") return unwrapSed(words);
  if (name === "git") return unwrapGit(words);
  if (name === "su" || name === "runuser") return unwrapSu(words);
  if (name === "parallel") return unwrapParallel(words);
  if (PYTHON.test(name)) return unwrapPython(words);
  return LOADER.test(name) ? unwrapWrapper(words, LOADER_OPTIONS, shell) : unwrapRunner(name, words);
}

/** Options with a script as value: `-c`, `-C`, `--init-command=…`, `--execute …`, `-EncodedCommand …`. */
const FOREIGN_SCRIPT = /^(-[a-z]*c|--(c|init|ex))/i;

function unwrapForeign(words: readonly CommandWord[], name: string, input: Input): Inner[] {
  const given = words.slice(1);
  const script = given.find((word) => word.kind !== "literal" || FOREIGN_SCRIPT.test(word.text));
  if (script !== undefined || (name === "nu" && given.some(({ text }) => /^-[a-z]*e/.test(text))))
    return [
      {
        kind: "opaque",
        reason: `'${name} ${script?.raw ?? "-e"}' runs a script in a language that cannot be checked`,
      },
    ];
  const file = given.find(({ text }) => !/^-./.test(text));
  const shows = given.some(({ text }) => /^--?(version|help)$/.test(text));
  const readsInput = file === undefined || /^(-|\/dev\/(stdin|fd\/.*))$/.test(file.text);
  if (!readsInput || shows || input === "file") return [];
  return [
    { kind: "opaque", reason: `'${name}' runs its input as a script in a language that cannot be checked` },
  ];
}

/** `sudo -s` and `-i` without a program start a shell. */
function unwrapSudo(words: readonly CommandWord[], found: Inner[]): Inner[] {
  const shell =
    found.length === 0 && words.some((word) => /^-[a-zA-Z]*[si]|^--(shell|login)$/.test(word.text));
  return shell ? [{ kind: "words", words: [literalWord("sh")] }] : found;
}

const SU_VALUES = {
  shortValues: "gGsw",
  longValues: ["group", "supp-group", "shell", "whitelist-environment"],
  scriptShort: "c",
  scriptLong: ["command", "session-command"],
};

/** `su [-] [USER [WORDS for its shell]]`, `runuser -u USER PROGRAM`. */
function unwrapSu(words: readonly CommandWord[]): Inner[] {
  const asUser = words.findIndex((word) => /^(-[a-zA-Z]*u|--user)/.test(word.text));
  if (asUser > 0 && baseName(words[0]?.text ?? "") === "runuser")
    return unwrapWrapper(words, { shortValues: "ugG", longValues: ["user", "group", "supp-group"] }, "sh");
  const user = words.findIndex((word, at) => at > 0 && !word.text.startsWith("-"));
  const options = { ...SU_VALUES, operands: [/^/] };
  const scripts = unwrapWrapper(words, options, "sh").filter((inner) => inner.kind !== "words");
  const forShell = user < 0 ? [] : words.slice(user + 1);
  return scripts.length > 0 ? scripts : [{ kind: "words", words: [literalWord("sh"), ...forShell] }];
}

function unwrapEvaluator(words: readonly CommandWord[], name: string, shell: ShellLanguage): Inner[] {
  const args = words.slice(words[1]?.text === "--" ? 2 : 1);
  if (name === "trap") return trapScript(args, shell);
  const script =
    args.length === 0 ? [] : scriptOf(args, shell, name).filter((inner) => inner.kind === "script");
  // Another command may also have made the file names found by a glob.
  return args.every((word) => word.kind === "literal")
    ? script
    : [...script, { kind: "opaque", reason: "'eval' runs text that another command may have made" }];
}

function trapScript(args: readonly CommandWord[], shell: ShellLanguage): Inner[] {
  // `trap -$x ACTION EXIT`
  if (args[0]?.kind === "dynamic" && args[0].text.startsWith("-")) return trapScript(args.slice(1), shell);
  const [action] = args;
  const lists = action === undefined || args.length < 2 || /^-.*$/.test(action.text);
  return lists ? [] : scriptOf([action], shell, "trap");
}

/** dash expands aliases in scripts: a later word may run another command. */
function unwrapAlias(words: readonly CommandWord[], shell: ShellLanguage): Inner[] {
  const definitions = words.slice(1).filter((word) => word.kind !== "literal" || word.text.includes("="));
  if (definitions.length === 0) return [];
  const values = definitions
    .slice(0, MAX_ALIASES)
    .map((word) => ({ ...word, text: word.text.slice(word.text.indexOf("=") + 1) }));
  const scripts = values.flatMap((word) => scriptOf([word], shell, "alias"));
  return [...scripts, { kind: "opaque", reason: "An alias may make a later word run another command" }];
}

/** Replacement strings and input sources make every job's text unknown. */
function unwrapParallel(words: readonly CommandWord[]): Inner[] {
  const jobs = {
    shortValues: "jaNnLIPS",
    longValues: ["jobs", "arg-file", "colsep", "joblog", "results", "sshlogin"],
  };
  const end = words.findIndex((word) => /^:::?:?\+?$/.test(word.text));
  const inner = unwrapWrapper(end < 0 ? words : words.slice(0, end), { ...jobs, appends: true }, "bash");
  return [
    ...inner,
    {
      kind: "opaque",
      reason: "'parallel' builds its commands from input that is only known when the command runs",
    },
  ];
}

/** `python -m pip install x` is `pip install x`. */
function unwrapPython(words: readonly CommandWord[]): Inner[] {
  const flag = words.findIndex((word, at) => at > 0 && /^-[abd-lA-Zn-z]*m/.test(word.text));
  // `-W ignore` and `-X dev` have a value.
  const isValue = (at: number): boolean => /^-[a-zA-Z]*[WX]$/.test(words[at - 1]?.text ?? "");
  const operand = words.findIndex((word, at) => at > 0 && !word.text.startsWith("-") && !isValue(at));
  if (flag < 0 || (operand >= 0 && operand < flag)) return [];
  const attached = words[flag]?.text.replace(/^-[a-zA-Z]*?m/, "") ?? "";
  const module = attached === "" ? words[flag + 1] : literalWord(attached);
  if (module === undefined || module.kind !== "literal") return [];
  return [{ kind: "words", words: [module, ...words.slice(flag + (attached === "" ? 2 : 1))] }];
}

const RUNS: ReadonlySet<string> = new Set(["-exec", "-execdir", "-ok", "-okdir"]);
/** Tests and actions with a value; the value itself is never read as a test. */
const VALUED = new RegExp(
  `^-(D|amin|anewer|atime|cmin|cnewer|context|ctime|fls|fprint|fprint0|fstype|gid|group|i?lname|i?name|inum|i?path|i?regex|i?wholename|links|max-?depth|min-?depth|mmin|mtime|newer(..)?|perm|printf|regextype|samefile|size|type|uid|used|user|xtype|files0-from)$`,
);

/** Finds each `-exec … ;` of find. `{}` stands for a file named by find. */
function unwrapFind(words: readonly CommandWord[]): Inner[] {
  const found: Inner[] = [];
  let unknown: CommandWord | undefined;
  let inPaths = true;
  let isLoose = false;
  for (let at = 1; at < words.length; at += 1) {
    const word = words[at];
    if (word === undefined) break;
    // A stray `;`: an earlier unknown word may be the `-exec`.
    isLoose ||= endsExec(words, at);
    if (hasUnknownName(word)) return [...found, unknownOption(word, "find")];
    if (mayBeOption(word) && !RUNS.has(words[at - 1]?.text ?? "")) {
      if (!inPaths || isAdded(word)) return [...found, unknownOption(word, "find")];
      unknown ??= word;
    }
    inPaths &&= !/^[-(!,]/.test(word.text) || /^-([HLP]|O\d)$/.test(word.text);
    if (VALUED.test(word.text)) at += 1;
    if (!RUNS.has(word.text)) continue;
    const start = at + 1;
    while (at + 1 < words.length && !endsExec(words, at + 1)) at += 1;
    const inner = words.slice(start, at + 1).map((one) => replaced(one, "{}"));
    if (inner.length > 0) found.push({ kind: "words", words: inner });
    at += 1;
  }
  if (unknown === undefined || !isLoose) return found;
  const { kind, reason } = unknownOption(unknown, "find");
  return [...found, { kind, reason }];
}

/** `{}$x +` and `\;$x` end an `-exec` if x is empty. */
function endsExec(words: readonly CommandWord[], at: number): boolean {
  const text = words[at]?.text;
  const before = words[at - 1]?.text;
  return (
    text === ";" ||
    text === `;${UNKNOWN_MARK}` ||
    (text === "+" && (before === "{}" || before === `{}${UNKNOWN_MARK}`))
  );
}
