/**
 * Parses the settings of a git folder, and the two settings that define its working tree. Follows the syntax of
 * git-config(1), but not includes. Git itself is not run: the broker parses for each command, and the folder's settings
 * may name programs.
 */

export type TreeSettings = {
  /** `core.worktree` as written, relative to the git folder or absolute. */
  readonly worktree: string | undefined;
  /** `extensions.worktreeConfig`: whether `config.worktree` applies too. */
  readonly worktreeConfig: boolean;
};

/**
 * A setting: `[remote "origin"] url = x` is `remote.url` with sub-section `origin`. Section and key are in lower case.
 */
export type GitSetting = {
  readonly name: string;
  readonly subsection: string | undefined;
  readonly value: string;
};

/** Parses a config file for its working tree; undefined when git would refuse the file. */
export function treeSettings(text: string): TreeSettings | undefined {
  const settings = gitSettings(text);
  if (settings === undefined) return undefined;
  const last = (name: string): string | undefined =>
    settings.findLast((setting) => setting.name === name && setting.subsection === undefined)?.value;
  const on = last("extensions.worktreeconfig")?.toLowerCase();
  return {
    worktree: last("core.worktree"),
    worktreeConfig: on !== undefined && ["true", "yes", "on", "1"].includes(on),
  };
}

const SECTION = /^\[([A-Za-z0-9.-]+)(?:[ \t\r]+"((?:[^"\\\n]|\\[^\n])*)")?\]/;
const NAME = /^([A-Za-z][A-Za-z0-9-]*)[ \t]*/;
/**
 * Git's own definition of blanks (`isspace` in its git-compat-util.h): any other blank character makes git refuse the
 * file.
 */
const BLANK = /^(?:[ \t\r\n]+|[#;][^\n]*)/;
const MARK = /^(?:\uFEFF|\xEF\xBB\xBF)/;

/** Parses every setting of a config file, in order; undefined when git would refuse the file. */
export function gitSettings(text: string): readonly GitSetting[] | undefined {
  const settings: GitSetting[] = [];
  let section: string | undefined;
  let subsection: string | undefined;
  // Git reads CR LF as a single line feed, even after a backslash (`get_next_char` in its config.c).
  for (let rest = text.replace(MARK, "").replaceAll("\r\n", "\n"); rest !== ""; ) {
    const blank = BLANK.exec(rest)?.[0];
    if (blank !== undefined) {
      rest = rest.slice(blank.length);
      continue;
    }
    const head = SECTION.exec(rest);
    if (head !== null) {
      section = String(head[1]).toLowerCase();
      subsection = head[2]?.replace(/\\(.)/gs, "$1");
      rest = rest.slice(head[0].length);
      continue;
    }
    const name = NAME.exec(rest);
    if (name === null || section === undefined) return undefined;
    const given = readValue(rest.slice(name[0].length));
    if (given === undefined) return undefined;
    settings.push({ name: `${section}.${String(name[1]).toLowerCase()}`, subsection, value: given.value });
    rest = given.rest;
  }
  return settings;
}

const SPACE = /[ \t\r\n]/;

const ESCAPED: Readonly<Record<string, string>> = {
  n: "\n",
  t: "\t",
  b: "\b",
  '"': '"',
  "\\": "\\",
  "\n": "",
};

/** Parses the value after a name, up to the line end. A name without `=` is true. */
function readValue(text: string): { readonly value: string; readonly rest: string } | undefined {
  if (!text.startsWith("=")) return /^(?:\n|$)/.test(text) ? { value: "true", rest: text } : undefined;
  let value = "";
  /** Length of `value` without trailing blanks. */
  let kept = 0;
  let quoted = false;
  let at = 1;
  for (; at < text.length && text[at] !== "\n"; at += 1) {
    const letter = text[at] ?? "";
    if (!quoted && (letter === "#" || letter === ";")) break;
    if (letter === '"') quoted = !quoted;
    else if (letter === "\\") {
      at += 1;
      // To git, the end of the file also ends the line.
      const escaped = ESCAPED[text[at] ?? "\n"];
      if (escaped === undefined) return undefined;
      value += escaped;
    } else if (quoted || !SPACE.test(letter) || value !== "") value += letter;
    if (quoted || !SPACE.test(letter)) kept = value.length;
  }
  if (quoted) return undefined;
  const end = text.indexOf("\n", at);
  return { value: value.slice(0, kept), rest: end === -1 ? "" : text.slice(end) };
}
