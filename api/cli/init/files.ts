/** Settings files of agents: which file a path means, its text, and writing it. */
import { createHash } from "node:crypto";
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  rmdirSync,
  rmSync,
  statSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { isWithin } from "../../../broker/model/folders.ts";
import { replaceFile } from "../../../broker/allow/policy-file.ts";
import { Complaint } from "../terminal/terminal.ts";

/** No agent's settings are as long. */
const MOST_BYTES = 4 << 20;

/** A settings file as it stands. */
export type SettingsFile = {
  /** As the agent names it. */
  readonly path: string;
  /** The file behind all links. */
  readonly target: string;
  /** Undefined: there is no file. */
  readonly text: string | undefined;
};

/**
 * Finds and reads a settings file. A link is followed to a file below one of `roots`. Throws {@link Complaint} for anything else
 * than a text file of a reasonable size.
 */
export function readSettings(path: string, roots: readonly string[]): SettingsFile {
  const target = targetOf(path, roots);
  const bytes = bytesOf(target);
  if (bytes === "missing") return { path, target, text: undefined };
  if (typeof bytes === "string") throw new Complaint(`Cannot use '${path}': it ${bytes}`);
  const text = bytes.toString("utf8");
  if (!bytes.equals(Buffer.from(text))) throw new Complaint(`Cannot use '${path}': it is not UTF-8 text`);
  return { path, target, text };
}

/** Returns the text of a file that is only looked at; undefined for what no agent reads as settings. */
export function textOf(path: string): string | undefined {
  const bytes = bytesOf(path);
  return typeof bytes === "string" ? undefined : bytes.toString("utf8");
}

/** Waits for no pipe and reads no device: a cloned repository brings links to `/dev/zero`. */
function bytesOf(path: string): Buffer | "missing" | "is not a file" | "is too long for settings" {
  if (!existsSync(path)) return "missing";
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stat = fstatSync(file);
    if (!stat.isFile()) return "is not a file";
    return stat.size > MOST_BYTES ? "is too long for settings" : readFileSync(file);
  } finally {
    closeSync(file);
  }
}

function targetOf(path: string, roots: readonly string[]): string {
  const real = realOf(path);
  const allowed = roots.map((root) => realOf(root));
  if (allowed.some((root) => isWithin(real, root))) return real;
  throw new Complaint(
    `Cannot use '${path}': it leads to '${real}', outside of '${roots.join("', '")}'. Nothing was changed; edit that file by hand, or put a file in place of the link`,
  );
}

/** The real path of a name that may be missing. */
function realOf(path: string): string {
  if (existsSync(path)) return realpathSync(path);
  if (isLink(path)) throw new Complaint(`Cannot use '${path}': it is a link to nothing`);
  return dirname(path) === path ? path : join(realOf(dirname(path)), basename(path));
}

/** Throws {@link Complaint} for a name in what is no folder, or a folder that this user may not search. */
function isLink(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    throw new Complaint(
      `Cannot use '${path}': '${dirname(path)}' is ${code === "ENOTDIR" ? "not a folder" : `closed to this user (${code})`}`,
    );
  }
}

/** Throws {@link Complaint} for a file that its owner made read-only, or that this user may not replace. */
export function refuseReadOnly({ path, target, text }: SettingsFile): void {
  const folder = nearestFolder(dirname(target));
  const isMarked = text !== undefined && (statSync(target).mode & 0o222) === 0;
  if (!isMarked && may(folder) && (text === undefined || may(target))) return;
  throw new Complaint(
    `Cannot write '${path}': ${isMarked || !may(target) ? "it" : `'${folder}'`} is read-only`,
  );
}

function nearestFolder(path: string): string {
  return existsSync(path) ? path : nearestFolder(dirname(path));
}

function may(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** Writes a text, undefined for no file. Returns the folders that were made for it. Throws `NotWritten` or {@link Complaint}. */
export function writeSettings(file: SettingsFile, text: string | undefined): readonly string[] {
  const made = text === undefined ? [] : makeFolders(dirname(file.target));
  try {
    if (text !== undefined) replaceFile(file.target, file.text ?? null, text);
    else if (file.text !== undefined) removeUnchanged(file.target, file.text);
    return made;
  } catch (error) {
    removeEmpty(made);
    throw error;
  }
}

function removeUnchanged(target: string, text: string): void {
  if (readFileSync(target, "utf8") !== text)
    throw new Complaint(`'${target}' changed meanwhile, so it was not removed. Run the command again`);
  rmSync(target);
}

function makeFolders(folder: string): readonly string[] {
  if (existsSync(folder)) return [];
  const above = makeFolders(dirname(folder));
  mkdirSync(folder);
  return [...above, folder];
}

/** Removes folders that hold nothing, the innermost first. */
export function removeEmpty(folders: readonly string[]): void {
  for (const folder of folders.toReversed()) {
    try {
      rmdirSync(folder);
    } catch {
      // It holds something by now, or is gone: ignoring, it is not in anybody's way.
    }
  }
}

export function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
