/** Settings of git whose value is a program, a command, or leads to more settings (git-config(1)). */
import type { GitSetting } from "./git-config.ts";
import { isPlainAddress } from "./git-safe-settings.ts";

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
  ...["path", "clean", "smudge"].map((key) => `lfs.${key}`),
  "gc.recentobjectshook",
  "imap.tunnel",
  ...["httpd", "browser"].map((key) => `instaweb.${key}`),
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

/**
 * Where git goes to by itself, for an object that a partial clone lacks: a `git log` there is enough. An address may name a program
 * (`ext::`, `NAME::`, `NAME://`), which a person's own settings may allow, or be an option of ssh.
 */
const ADDRESSES = new Set([
  ...["url", "pushurl", "pushdefault"].map((key) => `remote.${key}`),
  ...["remote", "pushremote"].map((key) => `branch.${key}`),
  "submodule.url",
  "lfs.url",
  "lfs.pushurl",
]);

/** They put another address in the place of one; theirs is the sub-section. */
const REWRITES = new Set(["url.insteadof", "url.pushinsteadof"]);

/** Tools whose name is a file that git's own scripts read. */
const TOOLS = new Set(["merge.tool", "merge.guitool", "diff.tool", "diff.guitool"]);

/** A command of git that only shows or records, with options that take no value: others start programs, write files or set settings. */
const PLAIN_ALIAS =
  /^(?:status|branch|commit|log|diff|show|checkout|switch|add|stash|remote|tag|shortlog|restore|reset)(?: (?:-[a-zA-Z]|--(?:oneline|graph|all|decorate|short|branch|cached|staged|stat|name-only|name-status|verbose|amend|no-edit|abbrev-commit|hard|soft)))*$/;

/** Whether git would run what whoever wrote the setting chose, or read it from elsewhere. */
export function runsCode(setting: GitSetting): boolean {
  const { name, subsection, value } = setting;
  // A remote's name is a word of the commands that git starts: `--upload-pack=…` is an option there.
  if (/^(?:remote|submodule|branch)\./.test(name) && subsection?.startsWith("-") === true) return true;
  if (LEADS_ON.has(name)) return true;
  if (ADDRESSES.has(name)) return !isPlainAddress(value);
  if (REWRITES.has(name)) return !isPlainAddress(subsection ?? "");
  if (name === "submodule.update") return value.startsWith("!");
  // A person's own alias of that name counts for less, and `-c core.pager=…` may stand in it.
  if (name.startsWith("alias.")) return !PLAIN_ALIAS.test(value);
  if (name.startsWith("protocol.")) return name.endsWith(".allow");
  if (TOOLS.has(name)) return value.includes("/");
  // With `http.saveCookies`, git writes what a server sends into that file.
  if (name === "http.cookiefile") return value !== "";
  if (name.startsWith("remote.")) return isCommand(setting);
  return isCommand(setting) && !HARMLESS.test(value);
}
