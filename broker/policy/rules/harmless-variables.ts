/**
 * Variables by which no program runs or loads code. Data, and a lookup.
 *
 * An allowing rule (`commands.allowed`, `approval.auto_approve`) covers a command only when every variable set for the command is
 * listed here with a fitting value: a list of dangerous names is never complete, because each tool has its own (`MAKEFLAGS`,
 * `XDG_CONFIG_HOME`, `NPM_CONFIG_SCRIPT_SHELL`). Refusing rules read `variable-table.ts` instead.
 *
 * Left out on purpose: PATH, HOME and XDG_* (name folders from which settings and programs are loaded), NODE_ENV and similar (a
 * project's own settings depend on the value), every real editor and askpass program, TERMINFO, LOCPATH and TEXTDOMAINDIR (files that
 * libraries parse).
 */

/** No quote, `$`, backtick, parenthesis, semicolon or line end: no program would expand such a value. */
const PLAIN = /^[\w .,:+@=%/-]*$/;
/** Not even a slash: a name looked up in a system folder must not lead to another folder. */
const NAME = /^[\w.,:+@-]*$/;
const SWITCH = /^(|0|1|true|false|yes|no|on|off|full|always|never|auto)$/;
const NUMBER = /^\d{0,12}$/;
/** The program that shows text unchanged. */
const PLAIN_PAGER = /^(|cat)$/;

interface Harmless {
  readonly names: RegExp;
  readonly values: RegExp;
  readonly reason: string;
}

const HARMLESS: readonly Harmless[] = [
  { names: /^LANG$|^LC_[A-Z]+$/, values: NAME, reason: "language, sorting and number formats" },
  {
    names: /^LANGUAGE$/,
    values: NAME,
    reason: "languages of messages; a value with a slash would name other catalogues",
  },
  { names: /^TZ$/, values: PLAIN, reason: "the time zone; a file that the value names is only parsed" },
  {
    names: /^(TERM|COLORTERM|TERM_PROGRAM|TERM_PROGRAM_VERSION)$/,
    values: NAME,
    reason: "what the terminal can show",
  },
  { names: /^(NO_COLOR|FORCE_COLOR|CLICOLOR|CLICOLOR_FORCE)$/, values: NAME, reason: "colours on or off" },
  { names: /^(COLUMNS|LINES)$/, values: NUMBER, reason: "the size of the terminal" },
  { names: /^(CI|CONTINUOUS_INTEGRATION)$/, values: NAME, reason: "no person at a terminal" },
  {
    names: /^(PAGER|GIT_PAGER|MANPAGER)$/,
    values: PLAIN_PAGER,
    reason: "no pager at all: other values are programs",
  },
  {
    names: /^GIT_(SEQUENCE_)?EDITOR$/,
    values: /^true$/,
    reason: "no editor at all: other values are programs",
  },
  {
    names: /^(CLAUDECODE|GEMINI_CLI|CURSOR_AGENT|OPENCODE)$/,
    values: NAME,
    reason: "which agent runs the command",
  },
  {
    names: /^(GIT_TERMINAL_PROMPT|GIT_OPTIONAL_LOCKS)$/,
    values: SWITCH,
    reason: "git neither asks nor waits",
  },
  {
    names: /^(PYTHONUNBUFFERED|PYTHONDONTWRITEBYTECODE)$/,
    values: SWITCH,
    reason: "how output and caches are written",
  },
  { names: /^RUST_BACKTRACE$/, values: SWITCH, reason: "how much a crash says" },
  {
    names: /^(SOURCE_DATE_EPOCH|SHLVL)$/,
    values: NUMBER,
    reason: "a number that is only printed or counted",
  },
];

/** Whether a variable with this name and value cannot make a program run or load code. */
export function isHarmless(name: string, value: string): boolean {
  return HARMLESS.some(({ names, values }) => names.test(name) && values.test(value));
}
