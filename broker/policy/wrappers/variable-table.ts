/**
 * Variables that make programs run code. Data only, for `unwrap-variables.ts`.
 *
 * Left out on purpose, since each is daily work and names a folder rather than a command: PATH, PYTHONPATH, LD_LIBRARY_PATH,
 * NODE_PATH, ENV as a plain word (`ENV=test npm start`), GIT_DIR. A program found through such a folder is a program in another
 * place, like `./x`.
 */

/** The value is a command line, or a program's name. */
export const COMMAND_VARIABLES: ReadonlySet<string> = new Set(
  `GIT_SSH_COMMAND GIT_SSH GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_PAGER GIT_EXTERNAL_DIFF GIT_PROXY_COMMAND GIT_ASKPASS
  SSH_ASKPASS SUDO_ASKPASS EDITOR VISUAL FCEDIT SUDO_EDITOR HGEDITOR SVN_EDITOR KUBE_EDITOR GH_EDITOR PAGER MANPAGER
  SYSTEMD_PAGER AWS_PAGER GH_PAGER BAT_PAGER DELTA_PAGER PSQL_PAGER BROWSER GH_BROWSER PROMPT_COMMAND LESSOPEN LESSCLOSE
  RSYNC_RSH RSYNC_CONNECT_PROG CVS_RSH SVN_SSH RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER FZF_DEFAULT_COMMAND`.split(
    /\s+/,
  ),
);

/** The value points to code outside the command; an empty value, or `/dev/null`, points to no code. */
export const CODE_VARIABLES: ReadonlySet<string> = new Set(
  `LD_PRELOAD LD_AUDIT DYLD_INSERT_LIBRARIES BASH_ENV PYTHONSTARTUP PERL5DB GIT_EXEC_PATH GIT_CONFIG_PARAMETERS
  GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM GIT_TEMPLATE_DIR BASH_ALIASES BASH_CMDS`.split(/\s+/),
);

/** Whether some value of this variable makes a program run code. */
export function isCodeVariable(name: string): boolean {
  return (
    COMMAND_VARIABLES.has(name) ||
    CODE_VARIABLES.has(name) ||
    OPTION_VARIABLES.has(name) ||
    name.startsWith("BASH_FUNC_")
  );
}

/** Prompts decode `\044` and `\140` before they expand. */
const PROMPT = /\$\(|`|\\0?44|\\140|@P/;

/** The value points to code only if it matches. */
export const OPTION_VARIABLES: ReadonlyMap<string, RegExp> = new Map([
  ["GIT_ALLOW_PROTOCOL", /(^|:)ext(:|$)|\0\?/],
  ["NODE_OPTIONS", /(^|\s)(-r\b|--(require|import|loader|experimental-loader)\b)/],
  ["PERL5OPT", /(^|\s)-?[mMdI]/],
  ["RUBYOPT", /(^|\s)-?r/],
  ["JAVA_TOOL_OPTIONS", /-(javaagent|agent(lib|path))/],
  ["_JAVA_OPTIONS", /-(javaagent|agent(lib|path))/],
  ["JDK_JAVA_OPTIONS", /-(javaagent|agent(lib|path))|@/],
  ["MAKEFLAGS", /--ev|--(f|mak)|SHELL|\$|(^|\s)-[a-zA-Z]*E|^[a-zA-Z]*E[^=]*(\s|$)/],
  ["GNUMAKEFLAGS", /--ev|--(f|mak)|SHELL|\$|(^|\s)-[a-zA-Z]*E|^[a-zA-Z]*E[^=]*(\s|$)/],
  ["TAR_OPTIONS", /command|program|script|action|-I|-F/],
  // `cd x && ./run` begins in another folder than the text says; scripts often empty it.
  ["CDPATH", /^(?!\.?$)/],
  ["PS0", PROMPT],
  ["PS1", PROMPT],
  ["PS2", PROMPT],
  ["PS3", PROMPT],
  ["PS4", PROMPT],
  // Interactive shells expand the values.
  ["ENV", /\$\(|`/],
  ["MAILPATH", /\$\(|`/],
]);
