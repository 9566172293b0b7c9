/** Programs that run a command only behind a subcommand, or as the value of an option. Data only. */
import type { WrapperOptions } from "./wrapper-table.ts";

/** `npm exec CMD`, `uv run CMD`: a wrapper, once the words up to the subcommand are skipped. */
export interface Subcommand {
  /** Global options with a value, before the subcommand. */
  readonly globals?: readonly string[];
  /** Subcommands, each with its wrapper options. */
  readonly subcommands: Readonly<Record<string, WrapperOptions>>;
}

const CALL: WrapperOptions = {
  shortValues: "pw",
  longValues: ["package", "workspace", "prefix", "loglevel", "registry"],
  scriptShort: "c",
  scriptLong: ["call"],
};
const UV_RUN: WrapperOptions = {
  shortValues: "pwdif",
  longValues:
    "with with-editable with-requirements python package directory project extra group no-group only-group no-extra env-file index default-index index-url extra-index-url find-links config-file cache-dir color refresh-package reinstall-package upgrade-package from".split(
      " ",
    ),
};
const PLAIN: WrapperOptions = {};
const FOLDER: WrapperOptions = { operands: [/^/] };
/** `npm explore PACKAGE -- CMD`, and its abbreviations. */
const EXPLORE = Object.fromEntries(
  ["explo", "explor", "explore"].map((name): [string, WrapperOptions] => [name, { ...FOLDER, joins: "" }]),
);

export const SUBCOMMANDS: ReadonlyMap<string, Subcommand> = new Map<string, Subcommand>([
  [
    "npm",
    {
      globals: ["--prefix", "-C", "--workspace", "-w", "--loglevel"],
      subcommands: { exec: CALL, exe: CALL, x: CALL, ...EXPLORE },
    },
  ],
  [
    "pnpm",
    {
      globals: ["-C", "--dir", "-F", "--filter"],
      subcommands: { exec: PLAIN, dlx: { longValues: ["package"] } },
    },
  ],
  [
    "yarn",
    { globals: ["--cwd"], subcommands: { exec: PLAIN, dlx: { shortValues: "p", longValues: ["package"] } } },
  ],
  ["bun", { subcommands: { x: PLAIN } }],
  ["deno", { subcommands: {} }],
  [
    "uv",
    {
      globals: ["--directory", "--project", "--cache-dir"],
      subcommands: { run: UV_RUN, tool: { ...UV_RUN, operands: [/^run$/] } },
    },
  ],
  ["poetry", { globals: ["-C", "--directory", "-P", "--project"], subcommands: { run: PLAIN } }],
  [
    "pdm",
    { globals: ["-c", "--config"], subcommands: { run: { shortValues: "p", longValues: ["project"] } } },
  ],
  ["hatch", { globals: ["-e", "--env", "-p", "--project"], subcommands: { run: PLAIN } }],
  ["rye", { subcommands: { run: PLAIN } }],
  ["pipenv", { subcommands: { run: PLAIN } }],
  ["pipx", { subcommands: { run: { longValues: ["spec", "python", "pip-args", "index-url", "with"] } } }],
  ["conda", { subcommands: { run: { shortValues: "np", longValues: ["name", "prefix", "cwd"] } } }],
  ["bundle", { subcommands: { exec: PLAIN } }],
  ["mise", { subcommands: { exec: PLAIN, x: PLAIN } }],
  ["asdf", { subcommands: { exec: PLAIN } }],
  ["pyenv", { subcommands: { exec: PLAIN } }],
  ["rbenv", { subcommands: { exec: PLAIN } }],
  ["nodenv", { subcommands: { exec: PLAIN } }],
  ["opam", { subcommands: { exec: PLAIN } }],
  ["direnv", { subcommands: { exec: FOLDER } }],
  ["perf", { subcommands: { stat: { shortValues: "eIrxopCGtD" }, record: { shortValues: "eFcopCmGgjk" } } }],
  ["volta", { subcommands: { run: { longValues: ["node", "npm", "pnpm", "yarn", "env"] } } }],
  ["fnm", { subcommands: { exec: { longValues: ["using"] } } }],
  ["heroku", { subcommands: { local: PLAIN } }],
]);

/** `npx CMD` and similar. */
export const PACKAGE_RUNNERS: ReadonlyMap<string, WrapperOptions> = new Map<string, WrapperOptions>([
  ["npx", CALL],
  ["bunx", { shortValues: "p", longValues: ["package"] }],
  ["uvx", UV_RUN],
  ["pnpx", PLAIN],
]);

/** Options with a command as value. */
export interface RunnerOptions {
  /** Letters with a command as value: a shell string, or a program's name, which reads the same. */
  readonly short?: string;
  readonly long?: readonly string[];
  /** Whole words after a single dash. */
  readonly word?: readonly string[];
  /** Further letters with a value: the reader must not mistake the value for an option. */
  readonly values?: string;
  /** Required prefix of a value, removed before reading: `--checkpoint-action=exec=CMD`. */
  readonly prefix?: Readonly<Record<string, string>>;
}

export const RUNNERS: ReadonlyMap<string, RunnerOptions> = new Map<string, RunnerOptions>([
  [
    "tar",
    {
      short: "IF",
      long: [
        "use-compress-program",
        "to-command",
        "info-script",
        "new-volume-script",
        "rsh-command",
        "rmt-command",
        "checkpoint-action",
      ],
      values: "fCTXbgHKLNVx",
      prefix: { "checkpoint-action": "exec=" },
    },
  ],
  ["rg", { long: ["pre", "hostname-bin"], values: "ABCEfegjmMrtTd" }],
  ["sort", { long: ["compress-program"], values: "koStT" }],
  ["split", { long: ["filter"], values: "abClnt" }],
  ["rsync", { short: "e", long: ["rsh", "rsync-path"], values: "BTfM" }],
  ["scp", { short: "S", values: "cDFiJlPoX" }],
  ["sftp", { short: "S", values: "BbcDFiJloPRsX" }],
  ["man", { short: "P", long: ["pager"], values: "CMLSepErRHT" }],
  ["cpio", { long: ["rsh-command"], values: "CEFIOMR" }],
  ["zip", { word: ["-TT"], long: ["unzip-command"], values: "btnxi" }],
  ["tcpdump", { short: "z", values: "BcCEFGijmMrsTVwWyZ" }],
  ["nodemon", { short: "x", long: ["exec"], values: "ewi" }],
  ["watchexec", { values: "wefio" }],
  ["hg", { values: "R" }],
  ["svn", { long: ["diff-cmd", "diff3-cmd", "editor-cmd"] }],
  ["mapfile", { short: "C", values: "dnOsuc" }],
  ["readarray", { short: "C", values: "dnOsuc" }],
  ["compgen", { short: "C", values: "AFGPSXoW" }],
  ["complete", { short: "C", values: "AFGPSXoW" }],
  ["bind", { short: "x", values: "fmqru" }],
  ["go", { word: ["-exec", "-toolexec", "--exec", "--toolexec"] }],
  ["nix-shell", { long: ["run", "command"] }],
]);

/** Programs with command lines as operands (`hyperfine 'x' 'y'`): every operand is run. Values: options with further commands. */
export const OPERAND_RUNNERS: ReadonlyMap<string, RunnerOptions> = new Map<string, RunnerOptions>([
  ["hyperfine", { short: "psc", long: ["prepare", "setup", "cleanup", "conclude"], values: "wmMrSPDLun" }],
  ["concurrently", { values: "nclp" }],
]);

/** Programs that run commands on another machine, later, or beyond the reach of the rules here. */
export const OPAQUE_PROGRAMS: ReadonlyMap<string, string> = new Map([
  ["ssh", "runs its command on another machine"],
  ["mosh", "runs its command on another machine"],
  ["rsh", "runs its command on another machine"],
  ["at", "reads commands now and runs them later"],
  ["batch", "reads commands now and runs them later"],
  ["expect", "types into the programs it starts"],
]);

/** Words that make a program opaque: a listener that starts a program, a makefile outside a file. */
export const OPAQUE_WORDS: ReadonlyMap<string, readonly RegExp[]> = new Map([
  ["nc", [/^-[a-zA-Z]*[ec]/]],
  ["ncat", [/^-[a-zA-Z]*[ec]/, /^--(exec|sh-exec|lua-exec)/]],
  ["netcat", [/^-[a-zA-Z]*[ec]/]],
  ["socat", [/^(exec|system|shell)[:-]/i, /,(exec|system)/i]],
  [
    "make",
    [
      // Long options may be shortened to unambiguous beginnings, and letters may stand together.
      /^--ev/,
      /^-[bBdehiknpqrRsStvwL]*E/,
      /^(SHELL|MAKEFLAGS|GNUMAKEFLAGS)[?:+]*=/,
      /^[^-=]+!=/,
      /^[^-=]+=.*\$[({](shell|eval|file|guile|load)\b/s,
      /^-[bBdehiknpqrRsStvwL]*f ?(-|\/dev\/(stdin|fd\/.*)|\/proc\/.*\/fd\/.*)$/,
      /^--(f|fi|fil|file|mak[a-z]*)[= ](-|\/dev\/(stdin|fd\/.*)|\/proc\/.*\/fd\/.*)$/,
    ],
  ],
  // `fc -s` runs an earlier line again, `-e` first runs a program on the line; `fc -l` only shows lines.
  ["fc", [/^-[es]/, /^[^-]/]],
  // Start a shell, as it is or again inside itself.
  ["capsh", [/^[-=+]{2}$/]],
  ["dpkg-architecture", [/^-c/, /^--command/]],
  ["history", [/^-[aps]/]],
  ["set", [/^-[a-zA-Z]*H/, /^-[a-zA-Z]*o hist/]],
  ["crontab", [/^-$/]],
  ["scp", [/(Proxy|Local|KnownHosts)Command/i]],
  ["sftp", [/(Proxy|Local|KnownHosts)Command/i]],
  ["apt", [/::(Pre|Post)-/i]],
  ["apt-get", [/::(Pre|Post)-/i]],
  ["hash", [/^-[a-zA-Z]*p/]],
  ["enable", [/^-[a-zA-Z]*f/]],
  ["tmux", [/^send(-keys)?$/]],
  ["screen", [/^stuff$/]],
]);
