import type { ProgramFacts } from "../programs/program-facts.ts";

/**
 * The words of a command that name certainly written files.
 *
 * - `each`: every operand.
 * - `script`: every operand but the script, which is the first operand unless given by an option.
 * - `destination`: the last operand, or the value of `-t`; copies land inside if the destination is a folder.
 * - `options`: the values of these options.
 */
export type WrittenWords =
  | { readonly kind: "each" }
  | { readonly kind: "script"; readonly unless: readonly string[] }
  | { readonly kind: "destination" }
  | { readonly kind: "options"; readonly names: readonly string[] };

export interface WriteRow {
  readonly facts: ProgramFacts;
  readonly writes: WrittenWords;
  /** Options required for a write; without any, the row is skipped. */
  readonly needs?: readonly string[];
  /** Options with which the command may succeed without a write, or write elsewhere: the row is skipped. */
  readonly without?: readonly string[];
  readonly reason: string;
}

const COPY: ProgramFacts = {
  longs: { "target-directory": "t", suffix: "S", "no-clobber": "n", update: "u", archive: "a", force: "f" },
  otherLongs: ["no-target-directory", "parents", "recursive", "verbose", "help", "version"],
  shortValues: "tS",
};

/** Print information only: the command writes nothing. */
const INFORMS = ["--help", "--version"] as const;

/**
 * Programs that write files named by their words. Only adds a reason: the world refuses unlisted writes all the same, and a row
 * claiming too much would deny a write that the world permits.
 *
 * Left out on purpose: `mkdir -p`, `rm -f`, `rm` and `rmdir` (succeed on existing or missing targets already); `tar`, `unzip`,
 * `rsync` and `git` (targets follow from the input read); `patch`, `ed` and editors (from input); `-O` of curl and `-P` of wget
 * (from the URL); compilers' `-o` (nothing is written after an error).
 */
export const WRITES: ReadonlyMap<string, WriteRow> = new Map<string, WriteRow>([
  [
    "tee",
    {
      facts: { longs: { append: "a", "ignore-interrupts": "i" }, otherLongs: ["output-error"] },
      writes: { kind: "each" },
      without: INFORMS,
      reason: "tee opens every file it names for writing",
    },
  ],
  [
    "touch",
    {
      facts: {
        longs: { "no-create": "c", date: "d", reference: "r", "no-dereference": "h" },
        otherLongs: ["time"],
        longValues: ["time"],
        shortValues: "drt",
      },
      writes: { kind: "each" },
      without: [...INFORMS, "-c", "-h"],
      reason: "touch makes a file, or changes its times",
    },
  ],
  [
    "truncate",
    {
      facts: { longs: { "no-create": "c", size: "s", reference: "r", "io-blocks": "o" }, shortValues: "sr" },
      writes: { kind: "each" },
      without: [...INFORMS, "-c"],
      reason: "truncate makes a file, or changes its size",
    },
  ],
  [
    "sed",
    {
      // The `i` of `-i.bak` takes the rest of its word, never the next word.
      facts: {
        longs: {
          "in-place": "i",
          expression: "e",
          file: "f",
          quiet: "n",
          silent: "n",
          "regexp-extended": "E",
        },
        shortValues: "efl",
      },
      writes: { kind: "script", unless: ["-e", "-f"] },
      needs: ["-i"],
      without: INFORMS,
      reason: "sed -i writes each of its files anew",
    },
  ],
  [
    "dd",
    {
      facts: { equalsOptions: true },
      writes: { kind: "options", names: ["of"] },
      without: ["conv", ...INFORMS],
      reason: "dd opens what of= names for writing",
    },
  ],
  [
    "cp",
    {
      facts: COPY,
      writes: { kind: "destination" },
      without: [...INFORMS, "-n", "-u", "--parents"],
      reason: "cp writes its copies there",
    },
  ],
  [
    "mv",
    {
      facts: COPY,
      writes: { kind: "destination" },
      without: [...INFORMS, "-n", "-u"],
      reason: "mv moves its files there",
    },
  ],
  [
    "ln",
    {
      facts: { ...COPY, longs: { ...COPY.longs, symbolic: "s" } },
      writes: { kind: "destination" },
      without: INFORMS,
      reason: "ln makes its links there",
    },
  ],
  [
    "install",
    {
      facts: {
        ...COPY,
        longs: { "target-directory": "t", directory: "d", compare: "C", mode: "m", owner: "o", group: "g" },
        shortValues: "tSmog",
      },
      writes: { kind: "destination" },
      without: [...INFORMS, "-d", "-C"],
      reason: "install writes its copies there",
    },
  ],
  [
    "sort",
    {
      facts: {
        longs: {
          output: "o",
          key: "k",
          "field-separator": "t",
          "buffer-size": "S",
          "temporary-directory": "T",
        },
        shortValues: "okStT",
        longValues: ["parallel", "batch-size", "compress-program", "files0-from", "random-source", "sort"],
      },
      writes: { kind: "options", names: ["-o"] },
      without: INFORMS,
      reason: "sort -o writes its result there",
    },
  ],
  [
    "curl",
    {
      facts: {
        longs: {
          output: "o",
          data: "d",
          header: "H",
          request: "X",
          user: "u",
          "user-agent": "A",
          "dump-header": "D",
        },
        otherLongs: ["output-dir", "silent", "fail", "location"],
        longValues: [
          "output-dir",
          "data-binary",
          "data-raw",
          "data-urlencode",
          "json",
          "url",
          "max-time",
          "retry",
        ],
        shortValues: "AbcCdDeEFHKmoPQrtTuUwxXyYz",
      },
      writes: { kind: "options", names: ["-o", "-D"] },
      without: [...INFORMS, "--output-dir", "-h", "-V"],
      reason: "curl -o writes what it receives there",
    },
  ],
  [
    "wget",
    {
      facts: {
        longs: { "output-document": "O", "output-file": "o", "append-output": "a", quiet: "q" },
        shortValues: "aABDeiIlNoOPQRtTUwX",
        longValues: ["header", "user-agent", "post-data", "post-file", "timeout", "tries"],
      },
      writes: { kind: "options", names: ["-O", "-o", "-a"] },
      without: [...INFORMS, "-h", "-V"],
      reason: "wget opens the file of -O, -o and -a before it connects",
    },
  ],
  [
    "find",
    {
      facts: { singleDash: true, longValues: ["fprint", "fprint0", "fprintf", "fls"] },
      writes: { kind: "options", names: ["-fprint", "-fprint0", "-fprintf", "-fls"] },
      without: ["-help", "-version"],
      reason: "find opens the file of -fprint and the like before it searches",
    },
  ],
]);
