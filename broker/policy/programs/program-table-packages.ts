import type { ProgramFacts } from "./program-facts.ts";

/** Lists the abbreviations of a subcommand, from `least` to the full name, for programs that accept unambiguous beginnings. */
function beginnings(full: string, least: string, meaning = full): Record<string, string> {
  const lengths = Array.from({ length: full.length - least.length + 1 }, (_, more) => least.length + more);
  return Object.fromEntries(lengths.map((length) => [full.slice(0, length), meaning]));
}

const NPM: ProgramFacts = {
  longs: {
    global: "g",
    "save-dev": "D",
    save: "S",
    "save-exact": "E",
    force: "f",
    yes: "y",
    workspace: "w",
    silent: "s",
  },
  otherLongs: ["prefix", "registry", "ignore-scripts", "legacy-peer-deps", "no-save", "omit", "workspaces"],
  shortValues: "Cw",
  longValues: [
    "prefix",
    "registry",
    "userconfig",
    "globalconfig",
    "cache",
    "loglevel",
    "workspace",
    "tag",
    "omit",
    "include",
    "dir",
    "filter",
    "cwd",
  ],
  subcommands: {
    add: "install",
    i: "install",
    in: "install",
    ins: "install",
    inst: "install",
    insta: "install",
    instal: "install",
    isnt: "install",
    isnta: "install",
    isntal: "install",
    isntall: "install",
    r: "uninstall",
    rm: "uninstall",
    un: "uninstall",
    unlink: "uninstall",
    remove: "uninstall",
    "run-script": "run",
    rum: "run",
    urn: "run",
    t: "test",
    tst: "test",
    x: "exec",
    ddp: "dedupe",
    // Install from a lock file, and may run tests afterwards.
    it: "install",
    "clean-install": "ci",
    ic: "ci",
    "install-clean": "ci",
    "isntall-clean": "ci",
    cit: "ci",
    sit: "ci",
    "clean-install-test": "ci",
    ...beginnings("install-test", "install-t", "install"),
    ...beginnings("install-ci-test", "install-ci", "ci"),
    up: "update",
    upgrade: "update",
    udpate: "update",
    ...beginnings("publish", "pu"),
    ...beginnings("unpublish", "unp"),
    ...beginnings("uninstall", "uni"),
    ...beginnings("update", "upd"),
    ...beginnings("exec", "exe"),
    ...beginnings("explore", "explo"),
  },
};

const BUN: ProgramFacts = { ...NPM, subcommands: { i: "install", a: "add", rm: "remove" } };

const PIP: ProgramFacts = {
  longs: {
    upgrade: "U",
    requirement: "r",
    editable: "e",
    quiet: "q",
    verbose: "v",
    target: "t",
    "index-url": "i",
    constraint: "c",
  },
  otherLongs: ["user", "no-deps", "pre", "break-system-packages"],
  shortValues: "recti",
  longValues: [
    "python",
    "proxy",
    "timeout",
    "log",
    "cache-dir",
    "cert",
    "client-cert",
    "trusted-host",
    "extra-index-url",
    "find-links",
    "prefix",
    "root",
  ],
};

const CARGO: ProgramFacts = {
  longs: { quiet: "q", verbose: "v", package: "p", jobs: "j", release: "r" },
  shortValues: "CpjZ",
  longValues: [
    "config",
    "color",
    "manifest-path",
    "target",
    "target-dir",
    "features",
    "git",
    "branch",
    "path",
    "root",
    "version",
    "explain",
  ],
  subcommands: { b: "build", c: "check", d: "doc", r: "run", t: "test", rm: "remove" },
  skipPrefix: "+",
  loadsCode: ["--config"],
};

/** Package managers. */
export const PACKAGE_PROGRAMS: readonly (readonly [string, ProgramFacts])[] = [
  ["npm", NPM],
  ["pnpm", NPM],
  ["yarn", { ...NPM, subcommands: { install: "install", add: "add", remove: "remove" } }],
  ["bun", BUN],
  ["pip", PIP],
  ["cargo", CARGO],
  [
    "go",
    {
      singleDash: true,
      longValues: ["C", "modfile", "o", "tags", "p", "ldflags", "gcflags"],
      loadsCode: ["-toolexec", "-exec"],
    },
  ],
  [
    "gem",
    {
      longs: { version: "v", quiet: "q", local: "l" },
      shortValues: "viC",
      longValues: ["config-file", "install-dir", "bindir", "source"],
      subcommands: { i: "install", ...beginnings("install", "ins"), ...beginnings("push", "pu") },
    },
  ],
  ["apt-get", { longs: { yes: "y", quiet: "q" }, shortValues: "otc" }],
  ["apt", { longs: { yes: "y", quiet: "q" }, shortValues: "otc" }],
];
