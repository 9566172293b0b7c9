/**
 * What a command would make of a repository's settings (`.git/config`), judged before the host's file says it: settings that run
 * nothing are the command's to write, and those that run code stay exactly as the host has them.
 */
import { lstatSync } from "node:fs";
import { join } from "node:path";
import type { FileIdentity, Replacement, ReplacementJudge, World, WorldViolation } from "../world/backend.ts";
import { type GitSetting, gitSettings } from "./git-config.ts";
import { isSafe } from "./git-safe-settings.ts";

/** Files that are remembered as judged; a broker's commands write a few. */
const MAX_JUDGED = 1000;

/** What says that a text is UTF-8, as bytes. */
const MARK = "\xEF\xBB\xBF";

/** Judges settings, and remembers the files that were written after that. */
export class JudgedSettings implements ReplacementJudge {
  readonly #judged = new Map<string, string>();
  readonly #stood = new WeakMap<object, Promise<boolean>>();

  judge({ path, before, after }: Replacement): WorldViolation | undefined {
    const message = whyNot(path, before, after);
    return message === undefined ? undefined : { kind: "setting", subject: path, message };
  }

  accepted(path: string, file: FileIdentity): void {
    this.#judged.delete(path);
    this.#judged.set(path, identityOf(file));
    const [oldest] = this.#judged.keys();
    if (this.#judged.size > MAX_JUDGED && oldest !== undefined) this.#judged.delete(oldest);
  }

  /**
   * Whether the project's own repository stood when the first command of this world began: then its settings and hooks are sealed for
   * as long as the world lives. Asked of the world once, before that command can have done anything.
   */
  stoodAtFirst(world: Pick<World, "isSealed">, project: string): Promise<boolean> {
    const known = this.#stood.get(world) ?? world.isSealed(join(project, ".git/config"));
    this.#stood.set(world, known);
    return known;
  }

  /** Whether the file is still one that was judged: no command has changed it. */
  has(path: string): boolean {
    const identity = this.#judged.get(path);
    const stat =
      identity === undefined ? undefined : lstatSync(path, { bigint: true, throwIfNoEntry: false });
    return stat !== undefined && identity === identityOf(stat);
  }
}

/** Bytes as letters: what is compared and told are names of settings, which are ASCII. */
function whyNot(path: string, before: Uint8Array, after: Uint8Array): string | undefined {
  const settings = read(after);
  if (settings === undefined)
    return `'${path}' was not changed: what would be in it is not written as git writes settings, so nobody can say what it runs`;
  const host = read(before, true);
  if (host === undefined) return `'${path}' was not changed: git could not read what the host has there`;
  const kept = host.filter((setting) => !isSafe(setting));
  const wanted = settings.filter((setting) => !isSafe(setting));
  const changed = difference(wanted, kept) ?? difference(kept, wanted);
  if (changed !== undefined)
    return `'${path}' was not changed: '${nameOf(changed)}' may make git run a program, read other settings or hooks. A person sets it on the host: git config ${optionOf(path)}${nameOf(changed)} VALUE`;
  if (!isSameOrder(wanted, kept))
    return `'${path}' was not changed: settings that may make git run a program would stand in another order`;
  return undefined;
}

/**
 * Letters that git writes into no settings are refused in what a command writes: a reader that takes one of them otherwise than git
 * does would judge another file than git reads. Host files are a person's, and may have been written on another system.
 */
function read(bytes: Uint8Array, isHosts = false): readonly GitSetting[] | undefined {
  const text = Buffer.from(bytes).toString("latin1");
  if (!isHosts && (/[^\P{Cc}\t\n\x80-\x9F]/u.test(text) || text.startsWith(MARK))) return undefined;
  return gitSettings(text);
}

/** The first of `some` that is not in `others` as often. */
function difference(some: readonly GitSetting[], others: readonly GitSetting[]): GitSetting | undefined {
  const left = others.map(keyOf);
  return some.find((setting) => {
    const at = left.indexOf(keyOf(setting));
    if (at >= 0) left.splice(at, 1);
    return at < 0;
  });
}

function isSameOrder(some: readonly GitSetting[], others: readonly GitSetting[]): boolean {
  return some.length === others.length && some.every((setting, at) => keyOf(setting) === keyOf(others[at]));
}

function keyOf(setting: GitSetting | undefined): string {
  return JSON.stringify([setting?.name, setting?.subsection, setting?.value]);
}

/** As git writes it: `remote.origin.url`. */
function nameOf({ name, subsection }: GitSetting): string {
  const at = name.lastIndexOf(".");
  const all = subsection === undefined ? name : `${name.slice(0, at)}.${subsection}${name.slice(at)}`;
  return all.replace(/\p{Cc}/gu, "?").slice(0, 200);
}

function optionOf(path: string): string {
  return path.endsWith("/.git/config") ? "" : `--file '${path}' `;
}

/** Not its ctime: git asks for another mode of a file, and takes it back, without a change. */
function identityOf({ dev, ino, size, mtimeNs }: FileIdentity): string {
  return [dev, ino, size, mtimeNs].join(":");
}
