import type { Workload } from "../workload.ts";

/** What a shell does by itself, and the small tools around it. */
export const SHELL: readonly Workload[] = [
  { name: "an exit code of 0, 1 and 77", quick: true, command: "true; echo $?; false; echo $?; (exit 77)" },
  { name: "a command that is not there", command: "no-such-program --help" },
  { name: "a file that cannot be run", command: "echo text > file; ./file", files: { other: "x" } },
  {
    name: "both outputs, and their end without a line break",
    quick: true,
    command: "printf out; printf err >&2; printf more",
  },
  {
    name: "pipes, lists and redirections",
    command: "echo c b a | tr ' ' '\\n' | sort > s && cat < s >> t; ! cat none 2>> t; cat t >&2",
  },
  {
    name: "here-documents",
    quick: true,
    command:
      "x=1; cat <<EOF > f; cat <<'EOF'; cat <<-EOF\n$x $(echo sub)\nEOF\n$x\nEOF\n\tindented\n\tEOF\ncat f",
  },
  {
    name: "functions, arithmetic, case and parameter expansion",
    command:
      "f() { echo $(( $1 * 7 )); }; f 6; v=a.tar.gz; echo ${v%.*} ${v##*.} ${#v} ${w:-none}; case $v in *.gz) echo gz;; esac",
  },
  {
    name: "background jobs and wait",
    quick: "at length",
    command: '(sleep 1; exit 3) & a=$!; (sleep 0.1; echo second) & wait $a; echo "first: $?"; wait; echo all',
  },
  {
    name: "a trap for EXIT, INT and TERM",
    quick: true,
    command:
      "trap 'echo bye' EXIT; trap 'echo term' TERM; trap '' HUP; kill -TERM $$; kill -HUP $$; echo after",
  },
  {
    name: "a shell that ends itself by a signal",
    quick: true,
    command: "echo before; kill -KILL $$; echo never",
  },
  {
    name: "a child that ends by SIGSEGV, SIGABRT, SIGPIPE",
    command:
      "(sh -c 'kill -SEGV $$'; echo $?; sh -c 'kill -ABRT $$'; echo $?; sh -c 'kill -PIPE $$'; echo $?; sh -c 'kill -TERM $$'; echo $?) 2> err; cat err",
  },
  {
    name: "SIGPIPE reaches a writer whose reader has gone",
    command: '{ yes; echo "yes: $?" >&2; } | head -2',
  },
  {
    name: "umask, and what it does",
    quick: true,
    command:
      "umask; touch a; mkdir b; umask 077; touch c; mkdir d; umask u=rwx,g=rx,o=; : > e; ls -l | cut -c1-10",
  },
  {
    name: "the limits of ulimit",
    // Not of descriptors (-n) and processes (-p), which are the world's own.
    command: "ulimit -c; ulimit -s; ulimit -f; ulimit -v; ulimit -t; ulimit -d; ulimit -l",
  },
  {
    name: "4,000 files are open at once",
    needs: ["python3"],
    tried: "ulimit -Sn 5000",
    command:
      "ulimit -Sn 5000; python3 -c \"f = [open('/dev/null') for _ in range(4000)]; print(len(f))\"; ulimit -n",
  },
  {
    name: "more open files than a world has for one command",
    prepare: "ulimit -Hn > most",
    command: "ulimit -n $(cat most) && echo raised",
    refused: { default: /descriptors/, strict: /descriptors/ },
  },
  {
    name: "ulimit -f stops a file that grows",
    command: "ulimit -f 8; head -c 100000 /dev/zero > big; echo $?; wc -c < big",
  },
  {
    name: "ulimit -n, lowered and met",
    command: "ulimit -n 8; exec 3<. 4<. 5<. 6<. 7<.; cat f; echo $?",
    files: { f: "text\n" },
  },
  {
    name: "/dev/fd, /dev/stdin and further descriptors",
    quick: "at length",
    command:
      "echo in | cat /dev/fd/0; echo x 3>f >&3; cat f; echo y | cat - /dev/stdin; cat /dev/fd/4 4< f; ls -l /dev/stdin /dev/fd | awk '{print $NF, $1}'",
  },
  {
    name: "/proc/self",
    command:
      "readlink /proc/self/cwd; readlink /proc/self/exe; tr '\\0' ' ' < /proc/self/cmdline; cat /proc/self/comm; grep -E '^(Name|Umask|Uid|Gid|Groups)' /proc/self/status",
  },
  {
    name: "the environment",
    quick: true,
    command: 'env | sort; echo "$HOME $USER $LOGNAME $SHELL"; echo ~; pwd; echo $PWD $OLDPWD $0 $# $-',
  },
  {
    name: "the working directory by the name of a link that leads there",
    quick: "at length",
    through: "exec",
    from: "link",
    prepare: "ln -s project ../link; git init -q; mkdir src",
    command:
      "pwd; pwd -P; echo $PWD; cd src && cd .. && pwd; git rev-parse --show-toplevel; node -p 'process.cwd()'; touch ../link/made; ls",
  },
  {
    name: "who one is",
    quick: "at length",
    command: "id; whoami; groups; getent passwd $(id -un); getent group $(id -gn); id -u nobody",
    needs: ["getent"],
  },
  {
    name: "the machine",
    command:
      "uname -srmo; hostname; nproc; getconf PAGESIZE; cat /etc/os-release | head -2; arch; tty; echo $?",
  },
  {
    name: "the time zone and the locale",
    command:
      "TZ=Asia/Tokyo date -d @0; TZ=Europe/Berlin date -d '2024-07-01 12:00' +%c; LC_ALL=C sort f; LC_ALL=C.UTF-8 sort f; locale; printf '%d\\n' \"'ü\"",
    files: { f: "b\nA\nä\nZ\n" },
  },
  {
    name: "mktemp, and what it makes",
    quick: "at length",
    command:
      "f=$(mktemp) && d=$(mktemp -d) && echo x > $f && mv $f $d/x && cat $d/x && ls -ld $d | cut -c1-10; rm -r $d; mktemp ./t.XXXX | wc -c; ls | wc -l",
    varies: { paths: [/\/t\.\w{4}$/] },
  },
  {
    name: "timeout, nice, nohup, time and env",
    command:
      "timeout 0.2 sleep 5; echo $?; timeout -s KILL 0.2 sleep 5; echo $?; nice -n 5 nice; nohup echo x; env -i A=b env; env -u HOME sh -c 'echo [$HOME]'",
  },
  {
    name: "xargs -P and -0",
    quick: true,
    command:
      "printf '%s\\0' 'a b' c d e f | xargs -0 -P 4 -n 1 sh -c 'echo \"[$0]\" > \"f $0\"'; cat f*; seq 20 | xargs -n 6 echo; echo x | xargs -I{} echo {}-{}; false | xargs; echo $?",
  },
  {
    name: "find with -exec, -delete and -newer",
    command:
      "mkdir -p a/b/c; touch a/1 a/b/2 a/b/c/3; find a -type f -exec echo {} + | tr ' ' '\\n' | sort; find a -name 2 -delete; find . -newer old -type d | sort; find a -empty; find a -printf '%y %f\\n' | sort",
    prepare: "touch -d '2020-01-01' old",
  },
  {
    name: "nested shells and quoting",
    command:
      "sh -c 'sh -c \"echo \\\"\\$0 \\$1\\\" \" a \"b c\"' ; echo 'a\"b' \"c'd\" a\\ b; printf '%s|' \"$@\" -- \"\" ' '; echo; printf '%b' '\\x41\\0101\\n'",
  },
  {
    name: "a script with its own interpreter line",
    files: {
      "run.sh": '#!/bin/sh\necho "$0 $*"; exit 4\n',
      "awk.sh": '#!/usr/bin/awk -f\nBEGIN { print "awk", ARGC }\n',
    },
    command: "./run.sh a b; echo $?; ./awk.sh x; PATH=$PWD:$PATH run.sh z",
  },
  {
    name: "set -e, set -u and set -x",
    command:
      "sh -c 'set -e; false; echo never'; echo $?; sh -c 'set -u; echo $none'; echo $?; sh -xc 'a=1; echo $a'",
  },
  {
    name: "read in a loop from a file",
    command:
      'n=0; while IFS=: read -r a b; do n=$((n+1)); echo "$n $a-$b"; done < f; echo $n; read x < f; echo $x',
    files: { f: "a:b\nc:d e\n\\x:y" },
  },
  {
    name: "getopts, shift, set -- and IFS",
    command:
      "set -- -a -b val rest; while getopts ab: o; do echo $o $OPTARG; done; shift $((OPTIND-1)); echo $1; IFS=,; set -- $(echo a,b,c); echo $2 $#",
  },
  {
    name: "test of files and strings",
    command:
      "for t in -e -f -d -r -w -x -s -L -p; do test $t f && echo $t; done; test f -nt g && echo newer; [ a \\< b ] && echo less; [ -t 0 ]; echo $?",
    files: { f: "x", g: "y" },
    prepare: "touch -d '2020-01-01' g",
  },
  {
    name: "standard input that is given",
    command: "wc; echo end",
    stdin: "a line\nanother\nno end",
  },
  {
    name: "standard input that nobody reads",
    quick: "at length",
    command: "echo done",
    stdin: "x".repeat(200_000),
  },
  { name: "no standard input", command: "cat; echo end; read x; echo $?" },
  {
    name: "process substitution and arrays in bash",
    quick: "at length",
    needs: ["bash"],
    shell: "bash",
    command:
      "diff <(printf 'a\\nb\\n') <(printf 'a\\nc\\n'); a=(x 'y z'); printf '[%s]' \"${a[@]}\" ${#a[@]}; echo; tee >(tr a-z A-Z > up) <<< word > low; until [ -s up ]; do sleep 0.05; done; cat up low; declare -A m=([k]=v); echo ${m[k]} ${PIPESTATUS[@]}",
  },
  {
    name: "pipefail, brace expansion and [[ ]] in bash",
    needs: ["bash"],
    shell: "bash",
    command:
      "set -o pipefail; false | true; echo $?; echo {1..5} {a,b}{x,y}; [[ abc =~ ^a(.)c$ ]] && echo ${BASH_REMATCH[1]}; shopt -s globstar; mkdir -p d/e; touch d/e/f; echo **/f; printf '%(%Y)T\\n' 0",
  },
  {
    name: "a coprocess in bash",
    strictest: "claude-code",
    needs: ["bash"],
    shell: "bash",
    command:
      "coproc UP { tr a-z A-Z; }; echo word >&${UP[1]}; exec {UP[1]}>&-; cat <&${UP[0]}; wait; echo $?",
  },
  {
    name: "job control in bash",
    needs: ["bash"],
    shell: "bash",
    command:
      "set -m; exec 2> /dev/null; sleep 30 & kill -STOP %1; until s=$(jobs -s); [ -n \"$s\" ]; do sleep 0.05; done; jobs -s | sed 's/[+-]//'; kill -CONT %1; kill %1; wait %1; echo $?",
  },
  {
    name: "output of programs that bash does not wait for",
    quick: "at length",
    needs: ["bash"],
    shell: "bash",
    command:
      "exec > >(sed s/^/out:/) 2> >(sed s/^/err:/ > err); echo one; seq 20000 | tee >(tail -1 > last) | tail -1; echo two >&2",
  },
  {
    name: "what is left in the background ends with its command",
    quick: "at length",
    command: "sleep 30 > /dev/null 2>&1 & echo started",
  },
  {
    name: "nohup, with its output in a file",
    command: "nohup sh -c 'echo begun; sleep 0.3; echo over' > log 2>&1 & wait; cat log",
  },
  {
    name: "exec 3<>, wait -n, disown and /dev/tcp in bash",
    needs: ["bash"],
    shell: "bash",
    command:
      "exec 3<>f; echo abc >&3; exec 3>&-; cat f; (sleep 0.1; exit 3) & (sleep 0.5; exit 4) & wait -n; echo $?; wait -n; echo $?; sleep 9 & disown; jobs; kill $!; exec 4<>/dev/tcp/127.0.0.1/9; echo $?",
  },
  {
    name: "fish",
    strictest: "claude-code",
    needs: ["fish"],
    command:
      "fish --no-config -c 'set x 1 2 3; echo $x[2] (count $x); function f; echo in $argv; return 3; end; f a; echo $status; string upper abc; exit 5'",
  },
  {
    name: "ksh",
    strictest: "claude-code",
    needs: ["ksh"],
    command: "ksh -c 'typeset -i i=3; ((i++)); print $i; x=(a b); print ${x[1]}'",
  },
  {
    name: "zsh",
    strictest: "claude-code",
    needs: ["zsh"],
    command:
      "zsh -fc 'setopt extendedglob; touch a1 a2 b1; print -l (a|b)1; print ${(U)$(echo up)}; for i in {1..3}; print $i'",
  },
];
