/** The bash of `substrate shell`: a shell that takes whole lines from its client, each after the broker has judged it. */

/** Frames a line, and ends what a person has typed ahead. */
const LINE_START = "\x02";
const LINE_END = "\x1e";

/** How many times bash can be brought back to its loop: Ctrl-C and Ctrl-Z end a loop, and the next line of the script begins another. */
const LOOPS = 1500;

/**
 * Read by bash from a memory file, because a start of another bash with a script would be judged like any other. bash is interactive
 * for the sake of job control, and reads lines by `read` instead of by itself, because a line must be judged as a whole. The loop is no
 * function: `declare` in one would be local. `history` lists the client's lines instead of the script's.
 *
 * It shows a prompt of its own: an escape sequence (OSC) with a random word, the last exit code and the folder, for the client. `read`
 * turns echo off before it writes that prompt, so no line is shown twice. The folder is the top of bash's stack of folders, because a
 * line may set PWD. What was typed and no program took ends the first `read`; a second escape sequence gives it back to the client
 * (`ahead`), with `%`, BEL, ESC and line feed in hexadecimal. Programs of the world can read the word and write such sequences: the
 * client checks `ahead` against the keys that it sent, and the broker keeps a held line in the shell's project.
 *
 * bash itself tells of jobs only where it reads lines itself. Here `jobs -ns` tells of those that were stopped (bash begins a line for
 * one that was stopped just now: 128 and one of the four signals that stop), and `__t` of the others: the number and pid of a new one
 * in the background, and the end of one that was there at the last prompt (`__k`) or is the last (`$!`). `jobs %N` shows a job that has
 * ended once and makes bash forget it, so programs of the foreground, which bash counts as jobs too, are shown to nobody. What `fg`
 * brought back is no news. A job's text may hold lines that look like jobs: `jobs -p` says which are.
 *
 * Without a trap of its own, a bash that reads a script ends when Ctrl-C interrupts a line of several commands; the children have the
 * signal's default. A line that itself waits in `read` goes on: bash starts `read` again after a trap.
 */
const script = (word: string): string => `PS1= PS2= HISTFILE= BASH_ARGV0=bash
set +o history; history -c
shopt -s expand_aliases checkwinsize
__b= __k= __l=
__s() { return "$__c"; }
__t() {
  __j=$(builtin jobs -p; builtin echo "; "; builtin jobs -l) __w= __f=$__k
  __a=$'\\n'\${__j%%"; "*} __j=\${__j#*"; "}
  [[ $__l != fg && $__l != fg[[:blank:]\\;]* && $__l != %* ]] || __f=
  while [[ $__j == $'\\n['* ]]; do
    __j=\${__j#??} __e=\${__j%%$'\\n['*}
    __j=\${__j#"$__e"} __o=\${__e%%]*} __p=\${__e#*]?} __q=\${__e##*$'\\n'}
    __p=\${__p#"\${__p%%[0-9]*}"} __q=\${__q#"\${__q%%[! ]*}"}
    [[ $__a == *$'\\n'"\${__p%% *}"$'\\n'* ]] || builtin continue
    [[ $__q == [0-9]*' '*'|'* && $__e == *$'\\n'* ]] && __q=\${__q%% *} || __q=\${__p%% *}
    case \${__p#* } in
      Running*) [[ $__k == *" \${__p%% *} "* ]] || builtin echo "[$__o] $__q"; __w+=" \${__p%% *} ";;
      Stopped*) __w+=" \${__p%% *} ";;
      *) if [[ $__q == "\${!-}" && $__q != "$__b" ]]; then builtin echo "[$__o] $__q"
        elif [[ $__f != *" \${__p%% *} "* ]]; then builtin jobs "%$__o" >/dev/null 2>&1; builtin continue; fi
        builtin jobs "%$__o" 2>/dev/null;;
    esac
  done
  __k=$__w __b=\${!-}
}
__n() {
  __c=\${__i:-$?} __i=
  case $__c in 14[7-9]|150) [[ -z $(builtin jobs -s) ]] || builtin echo;; esac
  builtin jobs -ns
  __t
  IFS= builtin read -rs -d $'\\x1e' -p $'\\e]697;${word};'"$__c;\${DIRSTACK[0]-\${PWD-}}"$'\\a' __l 2>/dev/tty || exit
  __l=\${__l//%/%25} __l=\${__l//$'\\a'/%07} __l=\${__l//$'\\e'/%1b} __l=\${__l//$'\\n'/%0a}
  IFS= builtin read -rs -d $'\\x1e' -p $'\\e]697;${word};ahead;'"$__l"$'\\a' __l 2>/dev/tty || exit
  until [[ $__l == $'\\x02'* ]]; do IFS= builtin read -rs -d $'\\x1e' __l || exit; done
  __l=\${__l#?}
  [[ -n $__l ]] || __i=$__c
  [[ $__l == ' '* || -z $__l ]] || builtin history -s -- "$__l"
}
trap '__i=130;break 9 2>/dev/null' INT
`;

const LOOP = `while __n;do __s;builtin eval "$__l";done\n`;

const END = `echo "substrate: this shell was interrupted ${LOOPS} times and ends; start another one"\n`;

/** The script's path, as a descriptor of the memory file. */
export const SHELL_ARGV = ["/bin/bash", "--norc", "--noprofile", "-i", "/dev/fd/8"] as const;

/**
 * The memory file: its descriptor's number is in a variable that nobody needs.
 *
 * @param word of letters and digits; makes the prompts known from a program's output
 */
export function shellScript(word: string): { readonly variable: string; readonly bytes: Buffer } {
  return { variable: "SUBSTRATE_SHELL_FD", bytes: Buffer.from(`${script(word)}${LOOP.repeat(LOOPS)}${END}`) };
}

/** Ends what was typed ahead: everything that the client passed on before it saw the prompt. */
export function typedAheadEnds(): Buffer {
  return Buffer.from(LINE_END);
}

/** A line as it is typed, also for a client that has said nothing since the prompt. */
export function typedLine(line: string): Buffer {
  return Buffer.from(`${LINE_END}${LINE_START}${line}${LINE_END}`);
}

/** Whether a line can be typed: no control characters but tab and line feed, which the terminal would act on. */
export function isTypeable(line: string): boolean {
  // oxlint-disable-next-line no-control-regex
  return !/[\u0000-\u0008\u000b-\u001f\u007f]/.test(line);
}
