/**
 * What the matcher knows about single programs. Data only. A program that is not here still works: its short options
 * are read as sets of letters, its long ones by name, and everything else is an operand.
 */
export interface ProgramFacts {
  /** Long option → the short one that means the same. */
  readonly longs?: Readonly<Record<string, string>>;
  /** Further long options, so that unambiguous beginnings (`--forc`) are told apart. */
  readonly otherLongs?: readonly string[];
  /** Short letters that take a value, as one string. */
  readonly shortValues?: string;
  readonly longValues?: readonly string[];
  /** Other names of a subcommand → the one that rules are written with. */
  readonly subcommands?: Readonly<Record<string, string>>;
  /** Short letters that mean the same: `rm -R` is `rm -r`. */
  readonly sameLetters?: Readonly<Record<string, string>>;
  /** Options are whole words after one dash (`find -delete`). */
  readonly singleDash?: boolean;
  /** The operands from this one on are each acted on alone: `rm a b` is `rm a` and `rm b`. */
  readonly eachFrom?: number;
  /** Short letters that are not known may have a value, although operands are acted on alone. */
  readonly otherValues?: boolean;
  /** The first operand is an octal mode: 0777 is 777. */
  readonly octal?: boolean;
  /** A first operand that begins so is an option (`cargo +nightly`). */
  readonly skipPrefix?: string;
  /** `name=value` operands are options, in any order (`dd of=x if=y`). */
  readonly equalsOptions?: boolean;
  /** Options that make the program run or load other code: a rule that allows never steps over them. */
  readonly loadsCode?: readonly string[];
}
