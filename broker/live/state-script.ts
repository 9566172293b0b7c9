/** How a command's own shell reports the folder and the exported variables at its end (`session_key`). */
import { FRAME_STATE_SCRIPT_FD } from "../../schemas/generated/frames.ts";
import type { ExecuteRequest } from "../../schemas/generated/types.ts";

/** Linux limits an execve argument to 128 KiB with its NUL (`MAX_ARG_STRLEN`, include/uapi/linux/binfmts.h). */
const MAX_ARGUMENT = 131_071;

/** The shell reads a sealed file without a name: other commands of its world can write what has one. */
const READ = `/proc/self/fd/${FRAME_STATE_SCRIPT_FD}`;

const BEGIN = "substrate-state";
const END = "end";

/**
 * Read by the shell before the command, which does not find its descriptor. It reports from an EXIT trap, in a subshell of builtins alone, so that no program starts, and
 * neither the options nor the exit code of the command's shell change. A trap of the command for EXIT takes the place of this one:
 * bash puts both together below; dash lets no function stand in for `trap`, and then reports nothing.
 */
const script = (path: string): string => `exec ${FRAME_STATE_SCRIPT_FD}<&-
unset BASH_ENV
__substrate_report() {
  __substrate_status=$?
  (
    set +eux; set -f; IFS='
'
    command cd -P . && printf '${BEGIN}\\0%s\\0' "$PWD"
    if [ -n "\${BASH_VERSION-}" ]; then
      for n in $(compgen -e); do printf '%s=%s\\0' "$n" "\${!n}"; done
    else
      for n in $(export -p); do
        case $n in 'export '*=*) n=\${n%%=*}; n=\${n#export } ;; *) continue ;; esac
        case $n in ''|[0-9]*|*[!A-Za-z0-9_]*) continue ;; esac
        eval "printf '%s=%s\\0' $n \\"\\\${$n-}\\""
      done
    fi
    printf '${END}\\0'
  ) >|${path}
  return $__substrate_status
}
trap '{ __substrate_report || :; } 2>/dev/null' EXIT
`;

/** Runs the command's own EXIT action behind the report, with the exit code that it would have seen. */
const OWN_TRAPS = `__substrate_own=
__substrate_ended() { return $__substrate_status; }
trap() {
  if [[ $# == 0 || $1 == -p ]]; then
    if [[ -n $__substrate_own ]]; then builtin trap -- "$__substrate_own" EXIT; else builtin trap - EXIT; fi
    builtin trap "$@"
  else
    builtin trap "$@" || return
    [[ $BASHPID == "$$" ]] || return 0
    local __substrate_now
    __substrate_now=$(builtin trap -p EXIT)
    [[ $__substrate_now == *__substrate_report* ]] && return 0
    eval "set \${__substrate_now:--- '' ''}"
    __substrate_own=\${3-}
    [[ $1 == trap ]] || __substrate_own=
  fi
  [[ $BASHPID == "$$" ]] || return 0
  builtin trap '{ __substrate_report || :; } 2>/dev/null
if ((__substrate_status == 0)); then eval "$__substrate_own"; else __substrate_ended || eval "$__substrate_own"; fi' EXIT
}
`;

/** A shell that reports: its words and its variables in place of the request's own. */
export type Reporting = {
  readonly argv: readonly string[];
  readonly variables: Readonly<Record<string, string>>;
  readonly script: Uint8Array;
};

/**
 * Undefined for a command whose end state is known without a report, or cannot be reported.
 *
 * @param argv the shell, `-c` and the command.
 * @param path a new file inside the world that needs no quotes in a shell.
 */
export function reporting(
  { cmd, shell }: Pick<ExecuteRequest, "cmd" | "shell">,
  argv: readonly string[],
  path: string,
): Reporting | undefined {
  if (cmd === undefined || keepsState(cmd)) return undefined;
  if (shell === "bash") {
    const own = /\btrap\b[^]*\b(?:exit|0)\b/i.test(cmd) ? OWN_TRAPS : "";
    return { argv, variables: { BASH_ENV: READ }, script: Buffer.from(`${script(path)}${own}`) };
  }
  // On the same line, because the shell's messages number the lines.
  const text = `if [ -r ${READ} ]; then . ${READ}; fi; ${cmd}`;
  if (Buffer.byteLength(text) > MAX_ARGUMENT) return undefined;
  return { argv: [...argv.slice(0, -1), text], variables: {}, script: Buffer.from(script(path)) };
}

/** Builtins and reserved words that may change the folder or variables, or run one that does. */
const CHANGES = new Set(
  `. alias bg bind break builtin caller case cd command compgen complete continue coproc declare dirs disown do done elif else enable
  esac eval exec exit export fc fg fi for function getopts hash help history if in jobs let local logout mapfile popd printf pushd read
  readarray readonly return select set shift shopt source suspend then time times trap typeset ulimit umask unalias unset until wait
  while`.split(/\s+/),
);

/**
 * Whether the text is one simple command that is no builtin with an effect on its shell. It runs as it came: a shell executes its last
 * command in its own place, so that a program's death by a signal is the shell's, which a trap would prevent.
 */
function keepsState(cmd: string): boolean {
  const plain = cmd.trim().replace(/[0-9]?[<>]&[0-9-]/g, "");
  const [first = ""] = /^[\w./+-]+(?=\s|$)/.exec(plain) ?? [];
  return first !== "" && !CHANGES.has(first) && !/[\n\r;&|(){}`\\#]|\$[[({]/.test(plain);
}

/** What a shell reported; a command may have written anything in its place. */
export type Reported = {
  readonly folder: string;
  /** Undefined: there is no end to them. */
  readonly variables: ReadonlyMap<string, string> | undefined;
};

/** Undefined: no report, because the shell was killed or became another program. */
export function parseReport(content: Uint8Array): Reported | undefined {
  const text = Buffer.from(content).toString("utf8");
  const [begin, folder, ...rest] = text.split("\0");
  if (begin !== BEGIN || folder === undefined || rest.length === 0) return undefined;
  const end = rest.lastIndexOf(END);
  // What follows is from whatever else the command wrote.
  const variables = end === -1 ? undefined : new Map(rest.slice(0, end).flatMap(variable));
  return { folder, variables };
}

function variable(text: string): [string, string][] {
  const found = /^([A-Za-z_][A-Za-z0-9_]*)=([^\uFFFD]*)$/s.exec(text);
  return found === null ? [] : [[found[1] ?? "", found[2] ?? ""]];
}
