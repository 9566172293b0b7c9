/** A policy's file, replaced whole: no reader meets half of it, and no crash leaves half of it. */
import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fsyncSync,
  linkSync,
  lstatSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import type { CompiledPolicy } from "../policy/index.ts";

/** Why nothing was written. */
export class NotWritten extends Error {
  override readonly name = "NotWritten";
}

/** Who may read a policy of the operator's that was not there: as the copy that the broker makes. */
const NEW_MODE = 0o644;

/**
 * Writes `text` in the place of `before`, with the mode and the owner that the file has; a link stays one. With `before` null there
 * is no file yet, and one is made. Throws {@link NotWritten} when the file says something else by now.
 */
export function replaceFile(path: string, before: string | null, text: string): void {
  const isThere = lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  if (isThere !== (before !== null)) throw changed(path);
  const target = isThere ? realpathSync(path) : path;
  const beside = `${target}.${randomBytes(6).toString("hex")}.new`;
  const stat = isThere ? statSync(target) : undefined;
  try {
    writeWhole(beside, text, stat);
    if (before === null) {
      // Fails where another one has made the file meanwhile, which a rename would not.
      linkSync(beside, target);
      rmSync(beside);
    } else {
      if (readFileSync(target, "utf8") !== before) throw changed(path);
      renameSync(beside, target);
    }
  } catch (error) {
    rmSync(beside, { force: true });
    throw error instanceof NotWritten
      ? error
      : new NotWritten(`Cannot write '${path}': ${error instanceof Error ? error.message : String(error)}`, {
          cause: error,
        });
  }
  syncFolder(dirname(target));
}

function changed(path: string): NotWritten {
  return new NotWritten(
    `'${path}' was changed by somebody else meanwhile, so nothing was written. Run it again`,
  );
}

function writeWhole(
  path: string,
  text: string,
  like: { readonly mode: number; readonly uid: number; readonly gid: number } | undefined,
): void {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
  const file = openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    writeFileSync(file, text);
    if (like !== undefined && (like.uid !== process.getuid?.() || like.gid !== process.getgid?.()))
      fchownSync(file, like.uid, like.gid);
    fchmodSync(file, like === undefined ? NEW_MODE : like.mode & 0o7777);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** So that the new name survives a power cut too. */
function syncFolder(path: string): void {
  const folder = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

/** Where a path of a policy's document stands: `default.yaml:31`; of a list that no file has, the policy's file alone. */
export type Sources = (path: readonly (string | number)[]) => string;

export function sourcesOf({ source, document, at }: CompiledPolicy): Sources {
  return (path) => {
    if (valueAt(document, path) === undefined) return source;
    const { file, line } = at(path);
    return `${file}:${line}`;
  };
}

function valueAt(document: object, path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>(
    (value, key) =>
      typeof value === "object" && value !== null
        ? (value as Record<string | number, unknown>)[key]
        : undefined,
    document,
  );
}
