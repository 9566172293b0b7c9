import type { Random } from "./fuzz-random.ts";

export const PROGRAMS = ["p1", "p2", "p3", "p4"] as const;

export type Make = () => string;

/** Words, and what stands beside them: `depth` is how far inside something they stand, and what is deep is short. */
export abstract class Words {
  protected readonly random: Random;

  constructor(random: Random) {
    this.random = random;
  }

  /** What substitutions hold. */
  abstract script(depth: number): string;

  protected pick(...choices: readonly [string, ...string[]]): string {
    return this.random.pick(choices);
  }

  protected choose(...choices: readonly [Make, ...Make[]]): string {
    return this.random.pick(choices)();
  }

  protected program(): string {
    return this.random.pick(PROGRAMS);
  }

  protected assignment(depth: number): string {
    return this.choose(
      () => `x=${this.word(depth)}`,
      () => `x=${this.word(depth)}`,
      () => `x=${this.word(depth)}`,
      () => "x=1",
      () => `x+=${this.word(depth)}`,
      () => `a=(${this.word(depth)} [1]=${this.word(depth)})`,
      () => `a[${this.arithmetic(depth)}]=1`,
    );
  }

  protected redirect(depth: number): string {
    const target = this.pick("/dev/null", "a.txt", this.word(depth + 1));
    return (
      this.pick("<", "2>&1 <", "<>", "0<", "&>", ">&", "3<", "{fd}<", ">|", "<<<") +
      this.pick("", " ") +
      target
    );
  }

  word(depth: number): string {
    if (depth > 2) return this.pick("a", "$x", "'b'", '"c d"', "\\ ", "$(p3)");
    return this.choose(
      () => this.pick("a", "b.c", "-x", "*.txt", "~", "{a,b}", "{1..2}", "a=b", "#a", "''", "1"),
      () => this.quoted(depth),
      () => this.quoted(depth),
      () => this.substitution(depth),
      () => this.parameter(depth),
      () => `"${this.inQuotes(depth)}"`,
      () => `$((${this.arithmetic(depth)}))`,
      () => `${this.word(depth + 1)}${this.word(depth + 1)}`,
      () => `{a,${this.word(depth + 1)}}`,
      () => this.pick(`<(${this.script(depth + 1)})`, `>(${this.program()})`),
    );
  }

  protected quoted(depth: number): string {
    return this.pick(
      "'a b'",
      "'$(p4)'",
      "'`p4`'",
      "\\$\\(p4\\)",
      "$'a\\'b'",
      "$'\\\\'",
      '$"a"',
      "'\"'",
      '"\'"',
      "'\\'",
      '"\\""',
      '"\\$(p4)"',
      "\\'",
      "\\`p4\\`",
      `"\${x:-'$(${this.program()})'}"`,
      `$'${this.program()}'`,
      `\\${this.word(depth + 1)}`,
    );
  }

  protected substitution(depth: number): string {
    return this.choose(
      () => `$(${this.script(depth + 1)})`,
      () => `$( ${this.script(depth + 1)}\n)`,
      () => `\`${this.script(depth + 2)}\``,
      () => `"$(${this.script(depth + 1)})"`,
      () => `$(case a in a) ${this.program()};; esac)`,
      () => `$(# ' comment\n${this.program()})`,
      () => `$(cat <<E\n$(${this.program()})\nE\n)`,
      () => `\${ ${this.program()};}`,
      () => `"\`${this.program()} \\"a\\"\`"`,
      () => `\`echo \\\`${this.program()}\\\`\``,
    );
  }

  protected parameter(depth: number): string {
    const inner = (): string =>
      this.choose(
        () => this.word(depth + 1),
        () => this.word(depth + 1),
        () => this.inQuotes(depth + 1),
      );
    const operator = this.pick(":-", "-", ":=", "+", ":+", "#", "##", "%", "/", "//", "^", ":", "@", ":?");
    return this.choose(
      () => `\${x${operator}${inner()}}`,
      () => `"\${x${operator}${inner()}}"`,
      () => `\${x/${inner()}/${inner()}}`,
      () => `\${a[${this.arithmetic(depth + 1)}]}`,
      () => `\${#x}\${!x}$#$$`,
      () => `\${x:${this.arithmetic(depth + 1)}}`,
    );
  }

  /** What may stand between double quotes. */
  protected inQuotes(depth: number): string {
    const part = (): string =>
      this.choose(
        () =>
          this.pick(
            "a",
            "'",
            "''",
            " ",
            "\\\\",
            '\\"',
            "\\$",
            "$x",
            "}",
            "{",
            "#",
            ";",
            "\n",
            "!",
            "\\a",
            "$'",
            "((",
            "))",
            "*",
          ),
        () => this.pick("a", "'", "'b'", "$"),
        () => (depth > 2 ? "$(p3)" : this.substitution(depth)),
        () => (depth > 2 ? "${x}" : this.parameter(depth)),
        () => `$((${this.arithmetic(depth + 1)}))`,
      );
    return Array.from({ length: 1 + this.random.below(3) }, part).join("");
  }

  protected arithmetic(depth: number): string {
    return this.choose(
      () => this.pick("1", "x", "x+1", "1<<2", "x?1:2", "'1'", '"1"', "a[0]", "1 # 2", "(1)"),
      () => `1 + $(${this.program()})`,
      () => `'$(${this.program()})'`,
      () => `"$(${this.program()})"`,
      () => (depth > 2 ? "$x" : this.parameter(depth + 1)),
      () => `a[$(${this.program()})]`,
    );
  }
}
