/**
 * Judges a command's new version of a repository's settings (`.git/config`) before the host's file gets it: harmless
 * settings are the command's to change, settings that run code stay exactly as on the host.
 */
import { BoundedMap } from "../model/bounded-map.ts";
import { createHash } from "node:crypto";
import { lstatSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import type {
  FileIdentity,
  Replacement,
  ReplacementJudge,
  World,
  WorldViolation,
} from "../../world/backend.ts";
import { type GitSetting, gitSettings } from "./config.ts";
import { isRoute, type Remotes } from "./remotes.ts";
import { isSafe } from "./safe-settings.ts";
import { lookExactlyAt } from "../model/host-paths.ts";
import { readSmallFile } from "../model/small-file.ts";

/** Bound of the cache; the commands of a broker write a few files. */
const MAX_JUDGED = 1000;

/** Larger files of a command are refused. */
const MAX_BYTES = 1024 * 1024;

/** Worktrees whose settings are checked; above this bound only a person may change the settings. */
const MAX_WORKTREES = 200;

/** Read by git after `config` if `extensions.worktreeConfig` is set. */
const WORKTREE_SETTINGS = "config.worktree";

/** The UTF-8 byte order mark, as bytes. */
const MARK = "\xEF\xBB\xBF";

/** Judges settings, and remembers the accepted files. */
export class JudgedSettings implements ReplacementJudge {
  /** Accepted files by path. The hash is needed because the writer of a file can set its times. */
  readonly #judged = new BoundedMap<string, { readonly identity: string; readonly hash: string }>(MAX_JUDGED);
  readonly #stood = new WeakMap<object, Promise<boolean>>();
  readonly #remotes: Remotes;

  constructor(remotes: Remotes) {
    this.#remotes = remotes;
  }

  judge({ path, before, after }: Replacement): WorldViolation | undefined {
    const message = whyNot(path, lettersOf(before), lettersOf(after), this.#remotes);
    return message === undefined ? undefined : { kind: "setting", subject: path, message };
  }

  accepted(path: string, file: FileIdentity, content: Uint8Array): void {
    this.#judged.delete(path);
    this.#judged.set(path, {
      identity: identityOf(file),
      hash: hashOf(Buffer.from(content).toString("utf8")),
    });
  }

  /**
   * Whether the project's own repository existed at the world's first command: then its settings and hooks are sealed
   * for the world's life. Asked of the world once, before that command can run. Otherwise commands may make one, and its remotes
   * open nothing.
   */
  stoodAtFirst(world: Pick<World, "isSealed">, project: string): Promise<boolean> {
    const file = join(project, ".git/config");
    const known = this.#stood.get(world) ?? this.#isSealed(world, file);
    this.#stood.set(world, known);
    return known;
  }

  async #isSealed(world: Pick<World, "isSealed">, file: string): Promise<boolean> {
    // Looked at before the command can begin.
    const isThere = lookExactlyAt(file) !== undefined;
    const isSealed = await world.isSealed(file);
    if (!isSealed && !isThere) this.#remotes.leaveToCommands(file);
    return isSealed;
  }

  /** Whether the file is still the accepted one, unchanged by any command. */
  has(path: string): boolean {
    const judged = this.#judged.get(path);
    if (judged === undefined) return false;
    const stat = lstatSync(path, { bigint: true, throwIfNoEntry: false });
    if (stat === undefined || identityOf(stat) !== judged.identity) return false;
    const content = readSmallFile(path, MAX_BYTES, Number(stat.uid));
    return content !== undefined && hashOf(content) === judged.hash;
  }
}

/**
 * Returns why a replacement is refused. Latin-1 is enough: only setting names are compared and shown, and names are
 * ASCII.
 */
function whyNot(path: string, before: string, after: string, remotes: Remotes): string | undefined {
  const host = gitSettings(before);
  if (host === undefined) return `'${path}' was not changed: git could not read the host's file`;
  const strange = strangeLetter(before, after);
  if (strange !== undefined)
    return `'${path}' was not changed: ${strange}, which git never writes into settings, so what it would run is unknown`;
  const settings = gitSettings(after);
  if (settings === undefined)
    return `'${path}' was not changed: its new content is not written as git writes settings, so what it would run is unknown`;
  // With `extensions.worktreeConfig`, git also reads a second file; it may hold a person's settings not in effect so
  // far.
  const isOpen = [...host, ...settings].some(isWorktreeConfig) && areWorktreesSafe(dirname(path));
  const isKept = (setting: GitSetting): boolean => !isSafe(setting) && !(isOpen && isWorktreeConfig(setting));
  const kept = host.filter(isKept);
  const wanted = settings.filter(isKept);
  const changed = difference(wanted, kept) ?? difference(kept, wanted);
  if (changed !== undefined)
    return `'${path}' was not changed: '${nameOf(changed)}' is not among the settings that surely run no program and read no other settings or hooks. A person can set it on the host: git config ${optionOf(path)}${nameOf(changed)} VALUE`;
  if (!isSameOrder(wanted, kept))
    return `'${path}' was not changed: settings that may make git run a program would change their order`;
  // Last: it notes what a command adds.
  let led: GitSetting | undefined;
  try {
    led = isOfWorktree(path)
      ? difference(settings.filter(isRoute), host)
      : remotes.ledElsewhere(path, host, settings);
  } catch (error) {
    return `'${path}' was not changed: ${error instanceof Error ? error.message : String(error)}`;
  }
  if (led !== undefined)
    return `'${path}' was not changed: '${nameOf(led)}' would redirect ${led.name.startsWith("branch.") ? "a person's branch, and with it the" : "an existing remote, and with it a person's"} next push or pull. A person can set it on the host: git config ${optionOf(path)}${nameOf(led)} VALUE`;
  return undefined;
}

function lettersOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("latin1");
}

const CONTROL = /[^\P{Cc}\t\n\x80-\x9F]/u;

/**
 * Refuses characters in a command's text that git never writes into settings: a parser reading such a character unlike
 * git would judge another text than git reads. A person may have written the host's file on another system. Git keeps
 * CR LF and the byte order mark when it changes a line, so a command may keep both.
 */
function strangeLetter(before: string, after: string): string | undefined {
  if (after.startsWith(MARK) && !before.startsWith(MARK)) return "it would begin with a byte order mark";
  const text = before.includes("\r\n") ? withoutReturns(after) : after;
  const [letter] = CONTROL.exec(text) ?? [];
  if (letter === undefined) return undefined;
  const code = letter.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0");
  const line = text.slice(0, text.indexOf(letter)).split("\n").length;
  const isHosts = withoutReturns(before).includes(letter);
  return `line ${line} would contain the control character U+${code}${isHosts ? ", as the host's file does (a person can remove it there)" : ""}`;
}

function withoutReturns(text: string): string {
  return text.replaceAll("\r\n", "\n");
}

/** Finds the first of `some` that occurs less often in `others`. */
function difference(some: readonly GitSetting[], others: readonly GitSetting[]): GitSetting | undefined {
  const left = new Map<string, number>();
  for (const key of others.map(keyOf)) left.set(key, (left.get(key) ?? 0) + 1);
  return some.find((setting) => {
    const key = keyOf(setting);
    const count = left.get(key) ?? 0;
    left.set(key, count - 1);
    return count <= 0;
  });
}

/** Whether the file is `config.worktree`: what it says of remotes and branches adds to `config`, or overrides it. */
function isOfWorktree(path: string): boolean {
  return path.endsWith(`/${WORKTREE_SETTINGS}`);
}

function isWorktreeConfig({ name, subsection }: GitSetting): boolean {
  return name === "extensions.worktreeconfig" && subsection === undefined;
}

/** Whether the settings of all worktrees run no program and lead no push or fetch elsewhere. */
function areWorktreesSafe(gitFolder: string): boolean {
  const worktrees = namesIn(join(gitFolder, "worktrees"));
  if (worktrees === undefined || worktrees.length > MAX_WORKTREES) return false;
  const folders = [gitFolder, ...worktrees.map((name) => join(gitFolder, "worktrees", name))];
  return folders.map((folder) => join(folder, WORKTREE_SETTINGS)).every(isMissingOrSafe);
}

function isMissingOrSafe(path: string): boolean {
  try {
    const stat = lstatSync(path, { throwIfNoEntry: false });
    if (stat === undefined) return true;
    const text = readSmallFile(path, MAX_BYTES, stat.uid);
    const settings = text === undefined ? undefined : gitSettings(text);
    return settings?.every((setting) => isSafe(setting) && !isRoute(setting)) ?? false;
  } catch {
    // The broker may not read the file, so it cannot judge the settings.
    return false;
  }
}

/** Lists a folder; undefined when unreadable. */
function namesIn(folder: string): readonly string[] | undefined {
  try {
    return readdirSync(folder);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT" ? [] : undefined;
  }
}

function isSameOrder(some: readonly GitSetting[], others: readonly GitSetting[]): boolean {
  return some.length === others.length && some.every((setting, at) => keyOf(setting) === keyOf(others[at]));
}

function keyOf(setting: GitSetting | undefined): string {
  return JSON.stringify([setting?.name, setting?.subsection, setting?.value]);
}

/** Spells a setting like git: `remote.origin.url`. */
function nameOf({ name, subsection }: GitSetting): string {
  const at = name.lastIndexOf(".");
  const all = subsection === undefined ? name : `${name.slice(0, at)}.${subsection}${name.slice(at)}`;
  return all.replace(/\p{Cc}/gu, "?").slice(0, 200);
}

function optionOf(path: string): string {
  return path.endsWith("/.git/config") ? "" : `--file '${path}' `;
}

/** Omits the ctime: git changes and restores a file's mode without touching the content. */
function identityOf({ dev, ino, size, mtimeNs }: FileIdentity): string {
  return [dev, ino, size, mtimeNs].join(":");
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("base64");
}
