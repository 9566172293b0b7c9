/** Settings and options by which git runs commands. Data only, for `unwrap-git.ts`. From git-config(1), git 2.39 to 2.51. */

const RUN = [
  "core\\.(pager|editor|sshcommand|fsmonitor|askpass|gitproxy|alternaterefscommand)",
  "pager\\..+",
  "sequence\\.editor",
  "credential\\.(.+\\.)?helper",
  "diff\\.external",
  "diff\\..+\\.(command|textconv)",
  "merge\\..+\\.driver",
  "(merge|diff)tool\\..+\\.(cmd|path)",
  "(man|browser)\\..+\\.(cmd|path)",
  "gpg\\.(.+\\.)?program",
  "gpg\\.ssh\\.defaultkeycommand",
  "filter\\..+\\.(clean|smudge|process)",
  "uploadpack\\.packobjectshook",
  "remote\\..+\\.(uploadpack|receivepack)",
  "submodule\\..+\\.update",
  "interactive\\.difffilter",
  "tar\\..+\\.command",
  "trailer\\..+\\.(cmd|command)",
  "hook\\..+\\.command",
  "imap\\.tunnel",
  "instaweb\\.httpd",
  "sendemail\\.(.+\\.)?(smtpserver|tocmd|cccmd|headercmd|sendmailcmd)",
];
/** Settings, in lower case, with a value that git runs. */
export const RUN_SETTINGS = new RegExp(`^(${RUN.join("|")})$`);

/** Settings that change the meaning of a git command: another subcommand, a forced push. Read whatever their value. */
export const MEANING_SETTINGS = /^(help\.autocorrect|remote\..+\.(push|mirror))$/;
/** Values without an effect on the meaning of a git command. */
export const PLAIN_MEANING = /^(|0|false|off|no|never|show|prompt)$/;

/** Settings that point to commands in a file, or permit an address to hold a command. */
export const OPAQUE_SETTINGS =
  /^(core\.hookspath|include\.path|includeif\..+|init\.templatedir|protocol\.(ext\.)?allow)$/;

/** Values that run no program. */
export const IDLE_VALUE = /^(|true|false|yes|no|on|off|[01]|never|always|user|\/dev\/null)$/;

/** Global options with a value in the next word. */
export const GIT_VALUES: ReadonlySet<string> = new Set([
  "-C",
  "-c",
  "--git-dir",
  "--work-tree",
  "--namespace",
  "--super-prefix",
  "--config-env",
  "--attr-source",
]);

export interface GitCommand {
  /** Options with a value that git runs; long options may be shortened. */
  readonly runs?: readonly string[];
  /** A letter with an attached value. */
  readonly attached?: string;
  /** A command follows this word, or follows at once (`""`). */
  readonly after?: string;
  /** Options that point to commands in files. */
  readonly opaque?: readonly string[];
  /** Options with a setting as value, as for `-c`. */
  readonly settings?: readonly string[];
}

const FETCH: GitCommand = { runs: ["--upload-pack", "--exec"] };
const SEND: GitCommand = { runs: ["--receive-pack", "--exec"] };

export const GIT_COMMANDS: ReadonlyMap<string, GitCommand> = new Map<string, GitCommand>([
  ["fetch", FETCH],
  ["pull", FETCH],
  ["ls-remote", FETCH],
  ["fetch-pack", FETCH],
  ["archive", FETCH],
  ["clone", { runs: ["--upload-pack", "-u"], settings: ["-c", "--config"], opaque: ["--template"] }],
  ["init", { opaque: ["--template"] }],
  ["push", SEND],
  ["send-pack", SEND],
  ["rebase", { runs: ["-x", "--exec"] }],
  ["difftool", { runs: ["-x", "--extcmd"] }],
  ["grep", { runs: ["--open-files-in-pager"], attached: "-O" }],
  ["bisect", { after: "run" }],
  ["submodule", { after: "foreach" }],
  ["shell", { runs: ["-c"] }],
  [
    "filter-branch",
    {
      runs: [
        "--setup",
        "--env-filter",
        "--tree-filter",
        "--index-filter",
        "--parent-filter",
        "--msg-filter",
        "--commit-filter",
        "--tag-name-filter",
      ],
    },
  ],
  ["send-email", { runs: ["--smtp-server", "--sendmail-cmd", "--to-cmd", "--cc-cmd", "--header-cmd"] }],
]);
