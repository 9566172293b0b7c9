/** Settings of git whose value is a program, a command, or leads to more settings (git-config(1)). */
import type { GitSetting } from "./git-config.ts";

/** By section and key; what stands between them (`filter.x.clean`) says only for what. */
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
  "lfs.path",
  "web.browser",
]);

/** Sections in which every key is a command. */
const SECTIONS = new Set(["pager", "alias"]);

const LEADS_ON = new Set(["include.path", "includeif.path", "core.hookspath"]);

/** Setting values that start only git's own programs or common system programs. */
const HARMLESS =
  /^(?:|true|false|yes|no|on|off|0|1|cat|less|more|vi|vim|nano|emacs|code --wait|gpg|gpg2|ssh|cache|store|manager|libsecret|git-lfs (?:clean|smudge) -- %f|git-lfs filter-process)$/;

/** Whether the value is a command. */
export function isCommand({ name }: GitSetting): boolean {
  const section = name.slice(0, name.indexOf("."));
  const key = name.slice(name.lastIndexOf(".") + 1);
  return COMMANDS.has(`${section}.${key}`) || SECTIONS.has(section);
}

/** Whether git would run what whoever wrote the setting chose, or read it from elsewhere. */
export function runsCode(setting: GitSetting): boolean {
  const { name, subsection, value } = setting;
  // A remote's name is a word of the commands that git starts: `--upload-pack=…` is an option there.
  if (/^(?:remote|submodule|branch)\./.test(name) && subsection?.startsWith("-") === true) return true;
  if (LEADS_ON.has(name)) return true;
  if (name === "submodule.update" || name.startsWith("alias.")) return value.startsWith("!");
  if (name.startsWith("protocol.")) return name.endsWith(".allow");
  return isCommand(setting) && !HARMLESS.test(value);
}
