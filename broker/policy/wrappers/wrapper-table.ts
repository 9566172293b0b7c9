/**
 * Programs that run a program given in their own arguments. Data only, for `unwrap-programs.ts`. Each row was checked against the
 * program itself where available (`test/corpus`), otherwise against its manual.
 */
export interface WrapperOptions {
  /** Short options with a value, as a string of letters. */
  readonly shortValues?: string;
  /** Long options with a value in the next word if written without `=`. Options with an optional value are not listed. */
  readonly longValues?: readonly string[];
  /** Letters of `shortValues` with a numeric value: the wrapper rejects any other value and runs nothing. */
  readonly numbers?: string;
  /** Operands of the wrapper itself before the program, with the pattern that each must match for the wrapper to run anything. */
  readonly operands?: readonly RegExp[];
  /** `NAME=value` words may stand before the program; `any`: the name may hold any characters (`BASH_FUNC_x%%=…`). */
  readonly assignments?: boolean | "any";
  /** Lookup options: the wrapper runs no program (`command -v ls`). */
  readonly lookups?: string;
  /** Options with a command string as value (`su -c`). */
  readonly scriptShort?: string;
  readonly scriptLong?: readonly string[];
  /** The command string is split into words of the same program, by `env`'s own rules. */
  readonly splits?: boolean;
  /** With this letter, or always (`""`), the words after the options are a single command string (`watch`, `entr -s`). */
  readonly joins?: string;
  /** The letters, or a long option, that undo `joins`. */
  readonly unjoins?: readonly string[];
  /** Options with the program's working directory as value; listed among the options with values too. */
  readonly folderShort?: string;
  readonly folderLong?: string;
  /** Further words of the program come from elsewhere (`xargs`): an unknown word is appended. */
  readonly appends?: boolean;
  /** Without a program the wrapper starts a shell on its input. */
  readonly shell?: boolean;
  /** The program started by default, with words from elsewhere. */
  readonly alone?: string;
}

const ANY = /^/;
const DURATION = /^[+]?(\d|\.\d|inf)/i;
const NUMBER = /^[+-]?\d/;
const MASK = /^[0-9a-f,:x-]+$/i;

/** Options shared by `sudo` and similar programs. */
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
    "auth-type",
    "login-class",
  ],
  assignments: true,
  lookups: "lvVKe",
  folderShort: "D",
  folderLong: "chdir",
};

const STRACE_LONGS =
  "output attach user env trace signal status columns abbrev verbose raw read write inject fault kvm interruptible detach-on string-limit summary-sort-by summary-columns const-print-style argv0 trace-path";
const SYSTEMD_RUN_LONGS =
  "host machine unit property description slice service-type uid gid nice working-directory setenv on-active on-boot on-startup on-unit-active on-unit-inactive on-calendar timer-property path-property socket-property job-mode background expand-environment";

export const WRAPPERS: ReadonlyMap<string, WrapperOptions> = new Map<string, WrapperOptions>([
  // `-S` has a grammar of its own: `splitEnvString` in unwrap-programs.ts.
  [
    "env",
    {
      shortValues: "uCa",
      longValues: ["unset", "chdir", "argv0"],
      assignments: "any",
      scriptShort: "S",
      scriptLong: ["split-string"],
      splits: true,
      folderShort: "C",
      folderLong: "chdir",
    },
  ],
  ["sudo", SUDO],
  ["doas", { shortValues: "uCa", assignments: true, lookups: "L" }],
  ["pkexec", { longValues: ["user"], shell: true }],
  [
    "run0",
    {
      shortValues: "ugDM",
      longValues: ["user", "group", "chdir", "setenv", "property", "unit", "nice", "slice", "description"],
      folderShort: "D",
      folderLong: "chdir",
      shell: true,
    },
  ],
  [
    "xargs",
    {
      shortValues: "aEIdLnPs",
      longValues: ["arg-file", "delimiter", "max-args", "max-procs", "max-chars", "process-slot-var"],
      numbers: "LnPs",
      appends: true,
      alone: "echo",
    },
  ],
  ["nohup", {}],
  ["setsid", {}],
  ["nice", { shortValues: "n", longValues: ["adjustment"], numbers: "n" }],
  [
    "ionice",
    { shortValues: "cnpPu", longValues: ["class", "classdata", "pid", "pgid", "uid"], lookups: "pPu" },
  ],
  [
    "chrt",
    {
      shortValues: "TPD",
      longValues: ["sched-runtime", "sched-period", "sched-deadline"],
      numbers: "TPD",
      operands: [NUMBER],
      lookups: "pm",
    },
  ],
  ["taskset", { operands: [MASK], lookups: "p" }],
  ["timeout", { shortValues: "sk", longValues: ["signal", "kill-after"], operands: [DURATION] }],
  ["time", { shortValues: "fo", longValues: ["format", "output"] }],
  ["stdbuf", { shortValues: "ioe", longValues: ["input", "output", "error"] }],
  ["unbuffer", {}],
  ["command", { lookups: "vV" }],
  ["builtin", {}],
  ["exec", { shortValues: "a" }],
  ["chroot", { operands: [ANY], longValues: ["groups", "userspec"], shell: true }],
  [
    "flock",
    {
      shortValues: "wE",
      longValues: ["timeout", "wait", "conflict-exit-code"],
      numbers: "wE",
      operands: [ANY],
      scriptShort: "c",
      scriptLong: ["command"],
    },
  ],
  [
    "script",
    {
      shortValues: "IOBTmoE",
      longValues: ["log-in", "log-out", "log-io", "log-timing", "logging-format", "output-limit", "echo"],
      scriptShort: "c",
      scriptLong: ["command"],
      // The operand is the output file.
      operands: [ANY],
      shell: true,
    },
  ],
  ["sg", { operands: [ANY], scriptShort: "c", joins: "" }],
  [
    "unshare",
    {
      shortValues: "RwSGl",
      longValues:
        "root wd setuid setgid map-user map-group map-users map-groups propagation setgroups monotonic boottime load-interp".split(
          " ",
        ),
      shell: true,
    },
  ],
  ["nsenter", { shortValues: "tSGW", longValues: ["target", "setuid", "setgid", "wdns"], shell: true }],
  [
    "setpriv",
    {
      longValues:
        "reuid regid ruid rgid euid egid groups inh-caps ambient-caps bounding-set securebits pdeathsig selinux-label apparmor-profile landlock-access landlock-rule seccomp-filter".split(
          " ",
        ),
    },
  ],
  ["prlimit", { shortValues: "po", longValues: ["pid", "output"], lookups: "p" }],
  ["strace", { shortValues: "abeEIoOpPsSuUX", longValues: STRACE_LONGS.split(" "), numbers: "as" }],
  ["ltrace", { shortValues: "aADeFlnopsuwxX" }],
  ["systemd-run", { shortValues: "puEHMs", longValues: SYSTEMD_RUN_LONGS.split(" "), shell: true }],
  ["fakeroot", { shortValues: "lsib", longValues: ["lib", "faked"], shell: true }],
  ["rlwrap", { shortValues: "bCDefFgHlMOPqsStwz" }],
  ["torsocks", { shortValues: "uapP" }],
  ["proxychains", { shortValues: "f" }],
  ["proxychains4", { shortValues: "f" }],
  ["dbus-run-session", { longValues: ["config-file", "dbus-daemon"] }],
  [
    "xvfb-run",
    { shortValues: "efnpsw", longValues: ["error-file", "auth-file", "server-num", "server-args"] },
  ],
  ["catchsegv", {}],
  ["firejail", {}],
  ["busybox", {}],
  ["toybox", {}],
  ["coreutils", {}],
  [
    "watch",
    {
      shortValues: "nq",
      longValues: ["interval", "equexit"],
      numbers: "nq",
      joins: "",
      unjoins: ["x", "exec"],
    },
  ],
  ["entr", { joins: "s" }],
  ["gosu", { operands: [ANY] }],
  ["su-exec", { operands: [ANY] }],
  ["setarch", { longValues: ["pid"] }],
  ...["linux32", "linux64", "x86_64", "i386", "i486", "i586", "i686", "uname26"].map(
    (name): [string, WrapperOptions] => [name, {}],
  ),
  ["choom", { shortValues: "pn", longValues: ["adjust", "pid"], lookups: "p" }],
  ["uclampset", { shortValues: "mMp", longValues: ["util-min", "util-max", "pid"], lookups: "p" }],
  ["logsave", { operands: [ANY] }],
  ["systemd-cat", { shortValues: "tp", longValues: ["identifier", "priority", "stderr-priority"] }],
  ["cross-env", { assignments: true }],
  ["cross-env-shell", { assignments: true, joins: "" }],
  ["dotenv", { shortValues: "epv" }],
  ["dumb-init", { shortValues: "r", longValues: ["rewrite"] }],
  ["tini", { shortValues: "ep" }],
  ["catatonit", {}],
  ["eatmydata", {}],
  ["chronic", {}],
  ["ifne", {}],
  ["faketime", { operands: [ANY], shortValues: "fp" }],
  ["cpulimit", { shortValues: "lpeP" }],
  ["numactl", { shortValues: "NmCiplT" }],
  ["ssh-agent", { shortValues: "aEOPt" }],
  ["systemd-inhibit", { longValues: ["what", "who", "why", "mode"] }],
  ["cgexec", { shortValues: "g" }],
  ["valgrind", {}],
]);
