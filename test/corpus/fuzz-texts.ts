/** Texts for the shells: from a grammar that knows what is odd about them, and then damaged a little. A seed names each. */
import { damaged, Random } from "./fuzz-random.ts";
import { PROGRAMS, Words } from "./fuzz-words.ts";

/** What the closed root must hold for these texts. */
export const NAMES = [
  ...PROGRAMS,
  ..."rm ls sh bash dash env nohup nice timeout xargs find setsid stdbuf cat tee true make git printf echo".split(
    " ",
  ),
];

/** One text: the same for the same seed and index. */
export function fuzzText(seed: number, index: number): string {
  const random = new Random(seed * 1_000_003 + index);
  const text = new Text(random).script(0);
  return random.oneIn(3) ? damaged(text, random) : text;
}

class Text extends Words {
  #documents = 0;

  script(depth: number): string {
    const count = depth > 1 ? 1 : 1 + this.random.below(2);
    const parts = Array.from({ length: count }, () => this.#command(depth));
    return parts.join(
      this.pick("; ", "\n", " && ", " | ", " || p2; ", " & ", "\n\n# p4 '\n", " |& ", ";\\\n"),
    );
  }

  #command(depth: number): string {
    if (depth > 2) return `${this.program()} ${this.pick("", "a", "b")}`;
    return this.choose(
      () => this.#simple(depth),
      () => this.#simple(depth),
      () => this.#simple(depth),
      () => this.#document(depth),
      () => this.#document(depth),
      () => this.#wrapped(depth),
      () => this.#wrapped(depth),
      () => this.#compound(depth),
      () => this.#compound(depth),
      () => this.#odd(depth),
    );
  }

  #simple(depth: number): string {
    const before = this.random.oneIn(4) ? `${this.assignment(depth)} ` : "";
    const program = this.pick(
      this.program(),
      this.program(),
      "echo",
      ":",
      "cat",
      `/usr/bin/${this.program()}`,
      "p\\1",
      "'p2'",
      'p"3"',
      "$'p4'",
    );
    const words = Array.from({ length: this.random.below(3) }, () => this.word(depth));
    const redirect = this.random.oneIn(4) ? ` ${this.redirect(depth)}` : "";
    return [before + program, ...words].join(this.pick(" ", " ", "\t", " \\\n")) + redirect;
  }

  #document(depth: number): string {
    this.#documents += 1;
    const end = `E${this.#documents}`;
    const written = this.pick(
      end,
      end,
      end,
      `'${end}'`,
      `"${end}"`,
      `\\${end}`,
      `'${end}'`,
      `"${end}"`,
      `'${end}'`,
      end,
      end,
      end,
      this.pick(`$'${end}'`, `$"${end}"`, `E''${this.#documents}`, `'${end} '`, `$${end}`, `"${end}\\"`),
    );
    const operator = this.pick("<<", "<<", "<<-", "<< ", "3<<", "0<<");
    const reader = this.pick(
      "cat",
      "cat",
      ":",
      this.program(),
      "sh",
      "bash",
      "{ cat; }",
      "x=1",
      "read y",
      "( sh )",
    );
    const line = (): string =>
      this.choose(
        () => this.inQuotes(depth),
        () => this.inQuotes(depth),
        () => this.parameter(depth + 1),
        () =>
          this.pick(
            "text",
            "it's",
            `$${end}`,
            `${end} `,
            ` ${end}`,
            `\\`,
            `\t${end}`,
            `a\\\n${end}`,
            `'${end}'`,
            `${end}\\`,
            `$'${end}'`,
            `${this.program()} b`,
            "`",
          ),
        () =>
          this.pick(
            `\${x:-'$(${this.program()})'}`,
            `\${x:-"$(${this.program()})"}`,
            `\${x#'}'$(${this.program()})}`,
            `\\$(p4)`,
            `\\\\$(${this.program()})`,
          ),
      );
    const body = Array.from({ length: this.random.below(4) }, line).join("\n");
    const rest = this.pick(
      "",
      "",
      ` ; ${this.program()}`,
      " | cat",
      " && p2",
      " # '",
      ` ${this.word(depth + 1)}`,
    );
    const after = this.random.oneIn(2) ? `\n${this.program()} after` : "";
    return `${reader} ${operator}${written}${rest}\n${body}\n${this.pick(end, end, `\t${end}`, `$${end}`, `${end} `, "")}${after}`;
  }

  #wrapped(depth: number): string {
    const program = this.program();
    const inner = this.#simple(depth + 2);
    const quoted = `'${this.script(depth + 1).replaceAll("'", "'\\''")}'`;
    const shell = this.pick("sh", "bash", "dash", "/bin/sh", "env bash", "nohup sh");
    return this.choose(
      () =>
        `${this.pick("env", "env -i", "env A=1", "env -u B", "env -", "env --", "env -C .", "env -v", "env -S", "env -i PATH=/usr/bin")} ${program} a`,
      () =>
        `env -S${this.pick("", " ", "=")}'${this.pick(program, `${program} "a b"`, `-i ${program}`, `A=1 ${program} \\_ x`, `\${x} ${program}`)}' b`,
      () =>
        `${this.pick("nohup", "nice", "nice -n 1", "nice -5", "timeout 5", "timeout -k 1 5", "timeout -s KILL 5s", "timeout --signal=9 5", "timeout -v 5", "setsid -w", "setsid", "stdbuf -oL", "stdbuf -o 0", "command", "command -p", "command --", "exec", "exec -c", "builtin command", "! ", "time", "time -p", "coproc", "coproc N")} ${inner}`,
      () =>
        `echo a | xargs ${this.pick("", "-n1", "-I{}", "-i", "-0", "-d,", "-L 1", "-t", "-P2", "--max-args=1", "-n 1 -r", "--", "-I X", "--repl=Y", "-x")} ${program} ${this.pick("", "{}", "X", "Y")}`,
      () =>
        `find . ${this.pick("", "-name '*.txt'", "-maxdepth 1", "-type f", "( -name a -o -name a.txt )", "-newer a.txt")} ${this.pick("-exec", "-execdir", "-ok")} ${program} ${this.pick("{} ';'", "{} +", "a \\;", "x{}y ';'", "+ ';'", "{} + -print", "{} ';' -exec p4 ';'")}`,
      () =>
        `${shell} ${this.pick("-c", "-ec", "-e -c", "-c -e", "-c --", "-c -", "-o errexit -c", "-eo errexit -c", "-ceo errexit", "+e -c", "-xc", "--norc -c", "-norc -c", "--posix -c", "-O extglob -c", "-uc", "-lc", "--rcfile /dev/null -c", "-rcfile /dev/null -c", "-p -c", "-s -c", "-ic")} ${quoted} ${this.pick("", "n a", "-c")}`,
      () =>
        `${this.pick("echo", "printf %s", "printf '%s\\n'", "echo -n", "printf")} ${quoted} | ${shell} ${this.pick("", "-s", "-s a", "-", "/dev/stdin", "-e", "-x")}`,
      () =>
        `${this.pick("eval", "eval --", "builtin eval", "command eval", "eval eval", "trap")} ${quoted}${this.pick("", " ; true", " EXIT", ` ${program}`)}`,
      () => `jobs ${this.pick("-x", "-l", "-x --", "-px")} ${program} a`,
      () =>
        `x=${this.pick("-c", "-e", "p1", "'-c p1'", "5")}; ${this.pick("bash", "sh", "env", "timeout", "find .", "nice", "xargs", "command")} ${this.pick('"$x"', "$x", "-$x", "${x}", "a$x")} ${quoted} ${this.pick("", "p3", "';'")}`,
      () => `${shell} ${this.pick("", "-s", "-")} <<< ${quoted}`,
    );
  }

  #compound(depth: number): string {
    const inner = (): string => this.script(depth + 1);
    return this.choose(
      () => `if ${inner()}; then ${inner()}; fi`,
      () => `for i in ${this.word(depth)}; do ${inner()}; done`,
      () => `for ((i=0;i<1;i++)); do ${inner()}; done`,
      () =>
        `case ${this.word(depth)} in ${this.pick("a)", "(a)", "*)", "a|*)", "'a')", '"$(p3)")')} ${inner()} ${this.pick(";;", ";;&", ";&", "")}${this.pick(" ", "\n")}esac`,
      () => `( ${inner()} )`,
      () => `{ ${inner()}; }`,
      () =>
        `f${this.#documents}() ${this.pick("{", "(")} ${inner()}\n${this.pick("}", ")")}; f${this.#documents}`,
      () => `function g { ${inner()}; }; g ${this.word(depth)}`,
      () =>
        `[[ ${this.pick("-v", "-n", "-f", "a ==", "1 -eq", "a =~", "!", "-R")} ${this.word(depth)} ]] ${this.pick("&&", ";", "||")} ${this.program()}`,
      () => `[[ a && ${this.program()} ]]`,
      () => `((${this.arithmetic(depth)}))${this.pick("", `; ${this.program()}`)}`,
      () => `select i in a; do ${inner()}; break; done`,
      () => `while ${inner()}; do break; done`,
      () => `{ ${inner()}; } ${this.redirect(depth)}`,
    );
  }

  #odd(depth: number): string {
    const program = this.program();
    return this.choose(
      () => `alias l='${program} '\nl ${this.word(depth)}`,
      () => `shopt -s expand_aliases\nalias l=${program}\nl`,
      () => `shopt -s extglob\necho ${this.pick("@", "+", "!", "?", "*")}(a|$(${program}))`,
      () => `read x <<< 'a[$(${program})]'; echo $((x))`,
      () =>
        `x='a[$(${program})]'; ${this.pick("echo $((x))", "((x))", "let x", "[[ x -eq 1 ]]", "declare -i y=x", "echo ${a[x]}", "echo ${x:x}", '[ -v "$x" ]', 'printf -v "$x" 1', 'unset "$x"', "a[x]=1", "test -v $x")}`,
      () => `for PS4 in '$(${program})'; do set -x; true; done`,
      () => `PS4='$(${program})' ${this.pick("sh", "bash")} -xc true`,
      () => `ENV='$(${program})' sh -i -c true`,
      () =>
        `env 'BASH_FUNC_${this.pick("cat", "q")}%%=() { ${program}; }' bash -c '${this.pick("cat", "q")} a'`,
      () =>
        `${this.pick("printf -v", "read", "declare", "export")} ${this.pick("'BASH_CMDS[q]'", "BASH_ALIASES[q]")}${this.pick(" ", "=")}/usr/bin/${program} <<< /usr/bin/${program}; q`,
      () =>
        `declare -n r=${this.pick("BASH_CMDS", "x", "PS4")}; r${this.pick("[q]", "")}=/usr/bin/${program}; q`,
      () => `hash -p /usr/bin/${program} q; q`,
      () => `set -- ${program} a; "$@"`,
      () => `x='$(${program})'; echo "\${x@P}"`,
      () => `mapfile -C '${program}' -c 1 y <<< a`,
      () => `make ${this.pick("--eval", "--ev", "-sE", "-E")}${this.pick("=", " ")}'$(shell ${program})'`,
      () =>
        `git ${this.pick("-c", "-C . -c")} ${this.pick(`alias.z='!${program}' z`, `core.pager='${program}' -p version`)}`,
      () => `. /dev/stdin <<< '${program} a'`,
      () => `echo ${this.word(depth)}#${this.word(depth)} # ${program} '`,
      () => `${program}${this.pick("\u00a0", "\u000b", "\f", "\r", "\\\n", "\u3000")}a`,
      () => `!${program}; ! ${program}`,
    );
  }
}
