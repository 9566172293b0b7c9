/**
 * Replaces a sealed file of the host for a command, after the judge has accepted the new content. The new file is sealed in every
 * world before any command can reach it (see world/native/seals/replacements.h), so no command can ever open the file for
 * writing, and the host never reads a half-written file.
 */
import { spawn } from "node:child_process";
import {
  type BigIntStats,
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  lstatSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { constants as system } from "node:os";
import { basename, dirname, join } from "node:path";
import { uuidv7 } from "uuidv7";
import {
  FRAME,
  FRAME_MAX_REPLACEMENT,
  FRAME_REPLACE_PATIENCE_MS,
  TAG,
} from "../../schemas/generated/frames.ts";
import type { ExecRequest, ReplacementJudge } from "../model/world.ts";
import { errnoName } from "../model/errno.ts";
import { decodeFields, decodeNumber, encodeFields, type Field } from "./frame-codec.ts";

const { EBUSY, EPERM } = system.errno;
/** In SEALED: the name is not sealed in that world. */
const NOT_SEALED = system.errno.ENOENT;

/** From `include/uapi/asm-generic/fcntl.h`; missing in Node. */
const O_PATH = 0o10000000;
const FOLDER = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** The sealed folder beside a judged file; the new file is staged there. */
const STAGE = "hooks";

/** Prefix of staged files: git runs no hook of such a name, and leftovers of a killed broker are recognisable. */
const STAGED = "substrate-settings-";

/** A new settings file gets the mode of the existing `config` beside it. */
const SETTINGS = "config";

/** How often to judge again when somebody changes the file meanwhile. */
const MAX_TRIES = 3;

/** Time limit of the exchange, a rename; an unresponsive file system is given up. */
const EXCHANGE_PATIENCE_MS = 2000;

/** Exit code of `substrate-init exchange` when the target has changed (world/native/seals/exchange.h). */
const CHANGED = 3;

const SECOND = 1_000_000_000n;

/** Init answers in less than a millisecond. */
const SEAL_PATIENCE_MS = 2000;

/** The content of a REPLACING frame. */
export type Asked = {
  readonly path: string;
  /** Device and inode of the file's folder. */
  readonly device: bigint;
  readonly inode: bigint;
  readonly content: Buffer;
};

/** Descriptors of the file's folder and of the staging folder, and the staging folder's mtime. */
type Staging = { readonly folder: number; readonly stage: number; readonly times: readonly string[] };

/** A world that must seal new files. */
type Follower = {
  readonly project: string;
  /** Whether the world's commands write to the host's file at a path. */
  readonly writes: (path: string) => boolean;
};

/** Thrown with the reason when a file is not written. */
class CannotReplace extends Error {
  override readonly name = "CannotReplace";
}

/** Asks one world's init to seal names, or to look up seals. */
export class Seals {
  readonly #send: (frame: Buffer) => void;
  readonly #waiting = new Map<number, (errno: number) => void>();
  #closed = false;
  #last = 0;

  constructor(send: (frame: Buffer) => void) {
    this.#send = send;
  }

  /** Seals the file at `staged`, which will become `target`, in this world. Returns 0 or an errno. Never rejects. */
  ask(staged: string, target: string, inode: bigint): Promise<number> {
    const number = Buffer.alloc(8);
    number.writeBigUInt64LE(inode);
    return this.#ask([
      [TAG.PATH, staged],
      [TAG.TARGET, target],
      [TAG.INODE, number],
    ]);
  }

  #ask(fields: readonly Field[]): Promise<number> {
    if (this.#closed) return Promise.resolve(EBUSY);
    this.#last = (this.#last % 0xffff_ffff) + 1;
    const question = this.#last;
    return new Promise((resolve) => {
      const late = setTimeout(() => this.#answer(question, EBUSY), SEAL_PATIENCE_MS);
      this.#waiting.set(question, (errno) => {
        clearTimeout(late);
        resolve(errno);
      });
      this.#send(encodeFields(FRAME.SEAL, question, fields));
    });
  }

  /** Whether a seal keeps every command of this world from writing an absolute path. Never rejects. */
  async isSealed(target: string): Promise<boolean> {
    return (await this.#ask([[TAG.TARGET, target]])) === 0;
  }

  take(question: number, payload: Buffer): void {
    const errno = new Map(decodeFields(payload)).get(TAG.ERRNO);
    this.#answer(question, errno === undefined ? EBUSY : decodeNumber(errno));
  }

  close(): void {
    this.#closed = true;
    for (const question of [...this.#waiting.keys()]) this.#answer(question, EBUSY);
  }

  #answer(question: number, errno: number): void {
    const resolve = this.#waiting.get(question);
    this.#waiting.delete(question);
    resolve?.(errno);
  }
}

/** Replacements in all worlds of a backend, one at a time per file. */
export class Replacements {
  readonly #init: string;
  readonly #worlds = new Map<Seals, Follower>();
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(init: string) {
    this.#init = init;
  }

  /** Includes a world in every seal until its last process is gone. */
  follow(seals: Seals, world: Follower, gone: Promise<unknown>): void {
    this.#worlds.set(seals, world);
    void gone.then(() => this.#worlds.delete(seals));
  }

  /** Returns false when the judge refused. Throws {@link CannotReplace} and the kernel's errors. */
  async replace(asked: Asked, judge: ReplacementJudge, tell: ExecRequest["onViolation"]): Promise<boolean> {
    const before = this.#turns.get(asked.path) ?? Promise.resolve();
    const turn = before.then(() => this.#replace(asked, judge, tell));
    const settled = turn.catch(() => {
      // The request failed, ignoring: the requester gets the error; the next request only waits for its turn.
    });
    this.#turns.set(asked.path, settled);
    try {
      return await turn;
    } finally {
      if (this.#turns.get(asked.path) === settled) this.#turns.delete(asked.path);
    }
  }

  async #replace(asked: Asked, judge: ReplacementJudge, tell: ExecRequest["onViolation"]): Promise<boolean> {
    const folder = openSync(dirname(asked.path), FOLDER);
    try {
      const { dev, ino } = fstatSync(folder, { bigint: true });
      if (dev !== asked.device || ino !== asked.inode)
        throw new CannotReplace("its folder on the host was replaced");
      const stage = openStage(folder, dirname(asked.path));
      const { mtimeNs } = fstatSync(stage, { bigint: true });
      const staged = { folder, stage, times: secondsAndRest(mtimeNs) };
      try {
        for (let tried = 0; tried < MAX_TRIES; tried += 1) {
          const done = await this.#try(asked, staged, judge, tell);
          if (done !== undefined) return done;
        }
      } finally {
        closeSync(stage);
      }
    } finally {
      closeSync(folder);
    }
    throw new CannotReplace("another program keeps changing it");
  }

  /** Returns undefined when the host's file changed meanwhile: the judge compared other content. */
  async #try(
    asked: Asked,
    { folder, stage, times }: Staging,
    judge: ReplacementJudge,
    tell: ExecRequest["onViolation"],
  ): Promise<boolean | undefined> {
    const target = below(folder, basename(asked.path));
    const old = readTarget(target) ?? nothingBeside(below(folder, SETTINGS));
    const violation = await inTime(
      judge.judge({ path: asked.path, before: old.content, after: asked.content }),
    );
    if (violation !== undefined) {
      tell(violation);
      return false;
    }
    const name = `${STAGED}${uuidv7()}`;
    const staged = below(stage, name);
    try {
      const made = writeStaged(staged, asked.content, old.mode);
      await this.#seal(join(dirname(asked.path), STAGE, name), asked.path, made.ino);
      // Record the acceptance before the rename: whoever finds the new file must know that the file was judged.
      await inTime(judge.accepted(asked.path, made, asked.content));
      const names = [name, basename(asked.path), ...old.identity, ...times];
      const ended = await exchange(this.#init, names, { folder, stage });
      // Ignore the exit code: the inode at the target shows whether the exchange happened.
      if (lstatSync(target, { bigint: true, throwIfNoEntry: false })?.ino === made.ino) return true;
      if (ended !== "changed") throw new CannotReplace(ended);
      return undefined;
    } finally {
      rmSync(staged, { force: true });
    }
  }

  /**
   * Seals the new file in every world, including worlds that start meanwhile; still later worlds seal whatever file they find on
   * the host.
   */
  async #seal(staged: string, target: string, inode: bigint): Promise<void> {
    const sealed = new Set<Seals>();
    for (;;) {
      const left = [...this.#worlds.keys()].filter((world) => !sealed.has(world));
      if (left.length === 0) return;
      const answers = await Promise.all(left.map((world) => world.ask(staged, target, inode)));
      for (const world of left) sealed.add(world);
      const refusing = left
        .map((seals, at) => ({ world: this.#worlds.get(seals), errno: answers[at] ?? EBUSY }))
        .find(({ world, errno }) => {
          // A missing seal matters if the world's commands can write there, as in a repository of their own: before and after the
          // exchange.
          return world !== undefined && errno !== 0 && (errno !== NOT_SEALED || world.writes(target));
        });
      if (refusing?.world !== undefined) throw new CannotReplace(unsealedWords(refusing.world.project));
    }
  }
}

/** Init has answered the call when a judge on another machine takes too long: the file must not change after that. */
async function inTime<T>(judged: T | Promise<T>): Promise<T> {
  if (!(judged instanceof Promise)) return judged;
  const since = performance.now();
  const answer = await judged;
  if (performance.now() - since <= FRAME_REPLACE_PATIENCE_MS / 2) return answer;
  throw new CannotReplace("the broker took too long to judge its new content");
}

function unsealedWords(project: string): string {
  return `the new file could not be sealed in every world: commands of the world in '${project}' could write it. Change it after that world has ended: 'substrate world restart' in that folder, or 'substrate world restart --all'`;
}

/** Returns the fields of a REPLACED frame. Never rejects: errors are reported as violations. */
export async function answerReplacement(
  replacements: Replacements,
  payload: Buffer,
  judge: ReplacementJudge | undefined,
  { onViolation }: Pick<ExecRequest, "onViolation">,
): Promise<Field[]> {
  const fields = new Map(decodeFields(payload));
  const token = Buffer.from(fields.get(TAG.TOKEN) ?? []);
  const answer = (errno: number): Field[] => [
    [TAG.TOKEN, token],
    [TAG.ERRNO, errno],
  ];
  if (judge === undefined) return answer(EBUSY);
  const path = fields.get(TAG.PATH)?.toString("utf8") ?? "";
  try {
    const asked = {
      path,
      device: fields.get(TAG.DEVICE)?.readBigUInt64LE() ?? 0n,
      inode: fields.get(TAG.INODE)?.readBigUInt64LE() ?? 0n,
      // Copy: the frame's memory is reused while the file waits for its turn.
      content: Buffer.from(fields.get(TAG.CONTENT) ?? []),
    };
    return answer((await replacements.replace(asked, judge, onViolation)) ? 0 : EPERM);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const message = `'${path}' was not changed, because ${why}`;
    onViolation({ kind: "setting", subject: path, message });
    return answer(EBUSY);
  }
}

function openStage(folder: number, path: string): number {
  try {
    return openSync(below(folder, STAGE), FOLDER);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const made = code === "ENOENT" ? `. A person can make one on the host: mkdir '${join(path, STAGE)}'` : "";
    throw new CannotReplace(
      `the folder '${STAGE}' beside it, where the new file is made, is missing (${code})${made}`,
    );
  }
}

type Target = {
  readonly content: Buffer;
  readonly mode: number;
  readonly identity: readonly string[];
};

function nothingBeside(settings: string): Target {
  const stat = lstatSync(settings, { throwIfNoEntry: false });
  const mode = stat?.isFile() === true ? stat.mode & 0o666 : 0o600;
  return { content: Buffer.alloc(0), mode, identity: NOTHING };
}

/** Returns undefined for a missing file. */
function readTarget(target: string): Target | undefined {
  if (lstatSync(target, { throwIfNoEntry: false }) === undefined) return undefined;
  const file = openSync(target, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stat = fstatSync(file);
    if (!stat.isFile() || stat.uid !== process.getuid?.())
      throw new CannotReplace("it is not a regular file of this user");
    if (stat.nlink > 1) throw new CannotReplace("it has a second name (a hard link)");
    if (stat.size > FRAME_MAX_REPLACEMENT)
      throw new CannotReplace(`it is longer than ${FRAME_MAX_REPLACEMENT} bytes`);
    const identity = identityOf(fstatSync(file, { bigint: true }));
    return { content: readFileSync(file), mode: stat.mode & 0o777, identity };
  } finally {
    closeSync(file);
  }
}

function writeStaged(path: string, content: Uint8Array, mode: number): BigIntStats {
  const file = openSync(
    path,
    constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
    0o600,
  );
  try {
    writeFileSync(file, content);
    fchmodSync(file, mode);
    return fstatSync(file, { bigint: true });
  } finally {
    closeSync(file);
  }
}

/** Arguments of `substrate-init exchange` for a missing target. */
const NOTHING = ["0", "0", "0", "0"] as const;

/** Arguments of `substrate-init exchange` for an existing target. */
function identityOf({ ino, size, mtimeNs }: BigIntStats): readonly string[] {
  return [`${ino}`, ...secondsAndRest(mtimeNs), `${size}`];
}

function secondsAndRest(time: bigint): readonly string[] {
  return [time / SECOND, time % SECOND].map(String);
}

/**
 * Exchanges the staged file with the target. Returns the result as text; `changed`: the target was a different file and is
 * untouched. Throws when the program does not start.
 */
async function exchange(
  init: string,
  words: readonly string[],
  { folder, stage }: { readonly folder: number; readonly stage: number },
): Promise<string> {
  const child = spawn(init, ["exchange", ...words], {
    env: {},
    stdio: ["ignore", "pipe", "ignore", folder, stage],
    timeout: EXCHANGE_PATIENCE_MS,
  });
  let text = "";
  child.stdout?.on("data", (bytes: Buffer) => {
    text += bytes.toString("latin1");
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  if (code === CHANGED) return "changed";
  const why = text === "" ? `ended with ${code}` : errnoName(Number(text));
  return `the files could not be swapped (${why})`;
}

function below(folder: number, name: string): string {
  return `/proc/self/fd/${folder}/${name}`;
}
