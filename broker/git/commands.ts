/**
 * Settings of git whose value is a program, a command, or leads to more settings (git-config(1)). Later releases of git
 * add more, so only a file not known to be git's is judged by this list alone.
 */
import type { GitSetting } from "./config.ts";

/** By section and key; a sub-section (`filter.x.clean`) only limits the scope. */
const COMMANDS = new Set([
  ...["fsmonitor", "sshcommand", "editor", "pager", "askpass", "alternaterefscommand", "gitproxy"].map(
    (key) => `core.${key}`,
  ),
  ...["command", "textconv", "external"].map((key) => `diff.${key}`),
  ...["clean", "smudge", "process"].map((key) => `filter.${key}`),
  ...["cmd", "path"].flatMap((key) =>
    ["difftool", "mergetool", "browser", "man"].map((at) => `${at}.${key}`),
  ),
  ...["uploadpack", "receivepack", "vcs"].map((key) => `remote.${key}`),
  ...["smtpserver", "sendmailcmd", "tocmd", "cccmd", "headercmd"].map((key) => `sendemail.${key}`),
  "sequence.editor",
  "interactive.difffilter",
  "gpg.program",
  "gpg.defaultkeycommand",
  "credential.helper",
  "merge.driver",
  "trailer.command",
  "trailer.cmd",
  "guitool.cmd",
  "tar.command",
  ...["path", "clean", "smudge"].map((key) => `lfs.${key}`),
  "gc.recentobjectshook",
  "hook.command",
  "svn.authorsprog",
  "imap.tunnel",
  ...["httpd", "browser"].map((key) => `instaweb.${key}`),
  "web.browser",
]);

/** Sections in which every key is a command. */
const SECTIONS = new Set(["pager", "alias"]);

const LEADS_ON = new Set(["include.path", "includeif.path", "core.hookspath"]);

/** `cat` prints the input or the named file; `true`, `false` and an empty value start no other program. */
const ANYWHERE = /^(?:|true|false|cat)$/;

/**
 * Common programs, each for the key that git starts it by: `vi` as a filter would type the bytes of a file as keys, `ssh` as a program
 * that shows changes would take a file's name for an option. No editor is a pager, for the same reason.
 */
const EDITOR = /^(?:vi|vim|nano|emacs|code --wait)$/;
const PAGER = /^(?:less|more|yes|no|on|off|0|1)$/;
const IN_PLACE: ReadonlyMap<string, RegExp> = new Map([
  ["core.editor", EDITOR],
  ["sequence.editor", EDITOR],
  ["core.pager", PAGER],
  ["pager", PAGER],
  ["core.fsmonitor", /^(?:yes|no|on|off|0|1)$/],
  ["core.sshcommand", /^ssh$/],
  ["gpg.program", /^gpg2?$/],
  ["credential.helper", /^(?:cache|store|manager|libsecret)$/],
  ["filter.clean", /^git-lfs clean -- %f$/],
  ["filter.smudge", /^git-lfs smudge -- %f$/],
  ["filter.process", /^git-lfs filter-process$/],
]);

/** Whether the value is a command that can only do what the key is for. */
export function isHarmlessCommand(setting: GitSetting): boolean {
  const { name, value } = setting;
  if (name.startsWith("remote.") || !isCommand(setting)) return false;
  return (
    ANYWHERE.test(value) || (IN_PLACE.get(keyOf(name)) ?? IN_PLACE.get(sectionOf(name)))?.test(value) === true
  );
}

/** Whether the setting is git's, and its value is a command or leads to more settings. */
export function namesCode(setting: GitSetting): boolean {
  return LEADS_ON.has(setting.name) || (isCommand(setting) && !isHarmlessCommand(setting));
}

function isCommand({ name }: GitSetting): boolean {
  return COMMANDS.has(keyOf(name)) || SECTIONS.has(sectionOf(name));
}

function keyOf(name: string): string {
  return `${sectionOf(name)}.${name.slice(name.lastIndexOf(".") + 1)}`;
}

function sectionOf(name: string): string {
  return name.slice(0, name.indexOf("."));
}
