import type { ProgramFacts } from "./program-facts.ts";

const CHMOD: ProgramFacts = {
  longs: { recursive: "R", verbose: "v", changes: "c", silent: "f", quiet: "f" },
  otherLongs: ["preserve-root", "no-preserve-root", "reference"],
  eachFrom: 1,
};

/** File tools. */
export const FILE_PROGRAMS: readonly (readonly [string, ProgramFacts])[] = [
  [
    "rm",
    {
      longs: { recursive: "r", force: "f", interactive: "i", verbose: "v", dir: "d" },
      otherLongs: ["no-preserve-root", "preserve-root", "one-file-system"],
      sameLetters: { R: "r" },
      eachFrom: 0,
    },
  ],
  ["rmdir", { longs: { parents: "p", verbose: "v" }, eachFrom: 0 }],
  ["unlink", { eachFrom: 0 }],
  [
    "shred",
    {
      longs: { force: "f", remove: "u", zero: "z", iterations: "n", size: "s" },
      shortValues: "ns",
      eachFrom: 0,
    },
  ],
  ["chmod", { ...CHMOD, octal: true }],
  [
    "chown",
    {
      ...CHMOD,
      otherLongs: ["from", "reference", "preserve-root", "no-preserve-root", "dereference", "no-dereference"],
      longValues: ["from"],
    },
  ],
  ["chgrp", CHMOD],
  [
    "cp",
    {
      longs: {
        recursive: "r",
        archive: "a",
        force: "f",
        interactive: "i",
        verbose: "v",
        "target-directory": "t",
      },
      sameLetters: { R: "r" },
      shortValues: "tS",
    },
  ],
  [
    "mv",
    {
      longs: { force: "f", interactive: "i", verbose: "v", "target-directory": "t", "no-clobber": "n" },
      shortValues: "tS",
    },
  ],
  ["ln", { longs: { symbolic: "s", force: "f", "target-directory": "t" }, shortValues: "tS" }],
  ["dd", { equalsOptions: true }],
  ["find", { singleDash: true }],
];
