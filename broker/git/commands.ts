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

/** Values that start only git's own programs or common system programs. */
const HARMLESS =
  /^(?:|true|false|yes|no|on|off|0|1|cat|less|more|vi|vim|nano|emacs|code --wait|gpg|gpg2|ssh|cache|store|manager|libsecret|git-lfs (?:clean|smudge) -- %f|git-lfs filter-process)$/;

/** Whether the value is a command that starts only git's own programs or common system programs. */
export function isHarmlessCommand(setting: GitSetting): boolean {
  return !setting.name.startsWith("remote.") && isCommand(setting) && HARMLESS.test(setting.value);
}

/** Whether the setting is git's, and its value is a command or leads to more settings. */
export function namesCode(setting: GitSetting): boolean {
  return LEADS_ON.has(setting.name) || (isCommand(setting) && !isHarmlessCommand(setting));
}

function isCommand({ name }: GitSetting): boolean {
  const section = name.slice(0, name.indexOf("."));
  const key = name.slice(name.lastIndexOf(".") + 1);
  return COMMANDS.has(`${section}.${key}`) || SECTIONS.has(section);
}
