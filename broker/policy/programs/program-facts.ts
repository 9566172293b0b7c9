/**
 * The matcher's knowledge of single programs. Data only. An unlisted program still works: short options are read as sets of
 * letters, long options by name, and every other word is an operand.
 */
export interface ProgramFacts {
  /** Long option → equivalent short option. */
  readonly longs?: Readonly<Record<string, string>>;
  /** Further long options, to tell unambiguous beginnings (`--forc`) apart. */
  readonly otherLongs?: readonly string[];
  /** Short letters with a value, as a string. */
  readonly shortValues?: string;
  readonly longValues?: readonly string[];
  /** Aliases of a subcommand → the name used in rules. */
  readonly subcommands?: Readonly<Record<string, string>>;
  /** Equivalent short letters: `rm -R` is `rm -r`. */
  readonly sameLetters?: Readonly<Record<string, string>>;
  /** Options are whole words after a single dash (`find -delete`). */
  readonly singleDash?: boolean;
  /** Index of the first operand that the program acts on alone: `rm a b` is `rm a` and `rm b`. */
  readonly eachFrom?: number;
  /** Unknown short letters may have a value, although the program acts on each operand alone. */
  readonly otherValues?: boolean;
  /** The first operand is an octal mode: 0777 is 777. */
  readonly octal?: boolean;
  /** A first operand with this prefix is an option (`cargo +nightly`). */
  readonly skipPrefix?: string;
  /** `name=value` operands are options, in any order (`dd of=x if=y`). */
  readonly equalsOptions?: boolean;
  /** Options that make the program run or load other code: an allowing rule never skips such an option. */
  readonly loadsCode?: readonly string[];
}
