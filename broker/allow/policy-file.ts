/** Replaces a policy's file atomically: neither a reader nor a crash sees half a file. */
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

/** Why the file was not written. */
export class NotWritten extends Error {
  override readonly name = "NotWritten";
}

/** Mode of a new operator's policy: the same as for the broker's copies. */
const NEW_MODE = 0o644;

/**
 * Replaces the content `before` by `text`; keeps the file's mode, owner and links. `before` null means a missing file, to be
 * made. Throws {@link NotWritten} if the file has changed meanwhile.
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
      // Fails if another process made the file meanwhile; a rename would not.
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
  return new NotWritten(`'${path}' changed meanwhile, so nothing was written. Run the command again`);
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

/** Syncs the folder, so that the new name survives a power cut too. */
function syncFolder(path: string): void {
  const folder = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

/** Returns the position of a document's path: `default.yaml:31`; for a list missing in every file, only the policy's file. */
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
