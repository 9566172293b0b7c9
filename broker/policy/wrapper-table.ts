/**
 * Programs that run another program given in their own arguments. Data only; `unwrap.ts` reads it.
 *
 * Left out on purpose: interpreters' one-liners (`python -c`), `make`, `npm run`, editors, `git -c alias.x=!…` and
 * `ssh`: what they run is not a command line here, and the same rules meet it again when it is executed in the world.
 */
export interface WrapperOptions {
  /** Short options that take a value, as one string of letters. */
  readonly shortValues?: string;
  /** Long options that take a value in the next word when they have no `=`. */
  readonly longValues?: readonly string[];
  /** Operands of the wrapper itself before the program: the duration of `timeout`, the folder of `chroot`. */
  readonly operands?: number;
  /** `NAME=value` words may stand before the program. */
  readonly assignments?: boolean;
  /** Options after which nothing is run (`command -v ls`). */
  readonly lookups?: string;
  /** Short options whose value is a command string (`env -S`, `su -c`). */
  readonly scriptShort?: string;
  readonly scriptLong?: readonly string[];
  /** Options whose value is the folder that the program runs in; they are among those with values too. */
  readonly folderShort?: string;
  readonly folderLong?: string;
  /** The words after the program come from elsewhere too (`xargs`): one unknown word is added. */
  readonly appends?: boolean;
}

const SUDO: WrapperOptions = {
  shortValues: "ugpCTDRhrtUac",
  longValues: [
    "user",
    "group",
    "prompt",
    "chdir",
    "chroot",
    "host",
    "role",
    "type",
    "other-user",
    "close-from",
    "command-timeout",
  ],
  assignments: true,
  lookups: "lvVK",
  folderShort: "D",
  folderLong: "chdir",
};

export const WRAPPERS: ReadonlyMap<string, WrapperOptions> = new Map<string, WrapperOptions>([
  [
    "env",
    {
      shortValues: "uCa",
      longValues: ["unset", "chdir", "argv0"],
      assignments: true,
      scriptShort: "S",
      scriptLong: ["split-string"],
      folderShort: "C",
      folderLong: "chdir",
    },
  ],
  ["sudo", SUDO],
  ["doas", { shortValues: "uC", assignments: true }],
  ["pkexec", { longValues: ["user"] }],
  [
    "run0",
    {
      shortValues: "ugD",
      longValues: ["user", "group", "chdir", "setenv", "property", "unit"],
      folderShort: "D",
      folderLong: "chdir",
    },
  ],
  [
    "runuser",
    {
      shortValues: "ugG",
      longValues: ["user", "group", "supp-group"],
      scriptShort: "c",
      scriptLong: ["command"],
    },
  ],
  [
    "su",
    {
      shortValues: "gGsw",
      longValues: ["group", "shell"],
      operands: 1,
      scriptShort: "c",
      scriptLong: ["command"],
    },
  ],
  [
    "xargs",
    {
      shortValues: "aEIdLnPs",
      longValues: ["arg-file", "delimiter", "replace", "max-lines", "max-args", "max-procs", "max-chars"],
      appends: true,
    },
  ],
  ["nohup", {}],
  ["setsid", {}],
  ["nice", { shortValues: "n", longValues: ["adjustment"] }],
  ["ionice", { shortValues: "cnpPu", longValues: ["class", "classdata", "pid"] }],
  ["chrt", { shortValues: "TPDp", operands: 1 }],
  ["taskset", { operands: 1 }],
  ["timeout", { shortValues: "sk", longValues: ["signal", "kill-after"], operands: 1 }],
  ["time", { shortValues: "fo", longValues: ["format", "output"] }],
  ["stdbuf", { shortValues: "ioe", longValues: ["input", "output", "error"] }],
  ["unbuffer", {}],
  ["command", { lookups: "vV" }],
  ["builtin", {}],
  ["exec", { shortValues: "a" }],
  ["chroot", { operands: 1, longValues: ["groups", "userspec"] }],
  [
    "flock",
    {
      shortValues: "wE",
      longValues: ["timeout", "wait", "conflict-exit-code"],
      operands: 1,
      scriptShort: "c",
      scriptLong: ["command"],
    },
  ],
  [
    "unshare",
    { shortValues: "RwSG", longValues: ["root", "wd", "setuid", "setgid", "map-user", "map-group"] },
  ],
  ["nsenter", { shortValues: "tSG", longValues: ["target", "setuid", "setgid"] }],
  [
    "setpriv",
    { longValues: ["reuid", "regid", "groups", "inh-caps", "ambient-caps", "bounding-set", "pdeathsig"] },
  ],
  ["prlimit", { shortValues: "p", longValues: ["pid"] }],
  ["strace", { shortValues: "eopPsSuaEIbX" }],
  ["ltrace", { shortValues: "eopnsuaADFlxw" }],
  [
    "systemd-run",
    {
      shortValues: "puEGMH",
      longValues: ["unit", "property", "uid", "gid", "slice", "setenv", "working-directory"],
    },
  ],
  ["fakeroot", { shortValues: "lsibu" }],
  ["rlwrap", { shortValues: "abBcCDfgHlmMopqQst" }],
  ["torsocks", {}],
  ["proxychains4", { shortValues: "f" }],
  ["dbus-run-session", {}],
  ["xvfb-run", { shortValues: "aefnps" }],
  ["catchsegv", {}],
  ["firejail", {}],
  ["busybox", {}],
  ["toybox", {}],
]);

/** Shells that take `-c`, and in which language the string is read. Others (fish, csh, …) speak another language. */
export const SHELLS: ReadonlyMap<string, "sh" | "bash"> = new Map<string, "sh" | "bash">([
  ["sh", "sh"],
  ["dash", "sh"],
  ["ash", "sh"],
  ["bash", "bash"],
  ["rbash", "bash"],
  ["zsh", "bash"],
  ["ksh", "bash"],
  ["mksh", "bash"],
]);

export const FOREIGN_SHELLS: ReadonlySet<string> = new Set([
  "fish",
  "csh",
  "tcsh",
  "nu",
  "elvish",
  "pwsh",
  "xonsh",
]);

/** Builtins that run text in the shell they stand in. */
export const EVALUATORS: ReadonlySet<string> = new Set(["eval", "trap"]);

/** What may stand behind a `|` for the word `sh` of a pattern. */
export function isShellName(name: string): boolean {
  return SHELLS.has(name) || FOREIGN_SHELLS.has(name);
}
