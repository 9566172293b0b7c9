/**
 * Writes a sealed file of the host for a command, when whoever knows such files has judged what the command would put in its
 * place. The new file is sealed in every world before any command can reach it (world/native/seals/replacements.h says how), so there is
 * no moment at which a command could open it for writing, and none at which the host reads half of it.
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
import { FRAME, FRAME_MAX_REPLACEMENT, TAG } from "../../schemas/generated/frames.ts";
import type { ExecRequest, ReplacementJudge } from "../model/world.ts";
import { errnoName } from "../model/errno.ts";
import { decodeFields, decodeNumber, encodeFields, type Field } from "./frame-codec.ts";

const { EBUSY, EPERM } = system.errno;
/** In SEALED: the file is not sealed in that world. */
const NOT_SEALED = system.errno.ENOENT;

/** From `include/uapi/asm-generic/fcntl.h`: Node has no name for it. */
const O_PATH = 0o10000000;
const FOLDER = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** The sealed folder beside a judged file in which the new one is made. */
const STAGE = "hooks";

/** What the new file is called there: git runs nothing of that name, and whoever finds one that a killed broker left sees whose it is. */
const STAGED = "substrate-settings-";

/** A second file of settings that is made gets the mode of the first. */
const SETTINGS = "config";

/** How often a file that somebody else changes meanwhile is judged anew. */
const MAX_TRIES = 3;

/** A rename; a file system that does not answer is not waited for. */
const EXCHANGE_PATIENCE_MS = 2000;

/** How `substrate-init exchange` ends when the file is another one (world/native/seals/exchange.h). */
const CHANGED = 3;

const SECOND = 1_000_000_000n;

/** Init answers in less than a millisecond. */
const SEAL_PATIENCE_MS = 2000;

/** What a REPLACING tells. */
export type Asked = {
  readonly path: string;
  /** Of its folder. */
  readonly device: bigint;
  readonly inode: bigint;
  readonly content: Buffer;
};

/** Descriptors of the folder of the file and of the one in which the new file is made, and when that was changed last. */
type Staging = { readonly folder: number; readonly stage: number; readonly times: readonly string[] };

/** A world that is asked. */
type Follower = {
  readonly project: string;
  /** Whether it writes a path as it is on the host. */
  readonly writes: (path: string) => boolean;
};

/** What kept a file from being written. */
class CannotReplace extends Error {
  override readonly name = "CannotReplace";
}

/** One world's questions to init about new files. */
export class Seals {
  readonly #send: (frame: Buffer) => void;
  readonly #waiting = new Map<number, (errno: number) => void>();
  #closed = false;
  #last = 0;

  constructor(send: (frame: Buffer) => void) {
    this.#send = send;
  }

  /** An errno; 0: `staged`, which is to become `target`, is sealed in this world. Never rejects. */
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

  /** Whether no command of this world can write what stands at an absolute path, because it is sealed there. Never rejects. */
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

/** Replacements in all worlds of a backend: a file has one at a time. */
export class Replacements {
  readonly #init: string;
  readonly #worlds = new Map<Seals, Follower>();
  readonly #turns = new Map<string, Promise<unknown>>();

  /** @param init the `substrate-init` program. */
  constructor(init: string) {
    this.#init = init;
  }

  /** Asks this world too, until the last process of it is gone. */
  follow(seals: Seals, world: Follower, gone: Promise<unknown>): void {
    this.#worlds.set(seals, world);
    void gone.then(() => this.#worlds.delete(seals));
  }

  /** Returns false when the judge refused. Throws {@link CannotReplace} and what the kernel says. */
  async replace(asked: Asked, judge: ReplacementJudge, tell: ExecRequest["onViolation"]): Promise<boolean> {
    const before = this.#turns.get(asked.path) ?? Promise.resolve();
    const turn = before.then(() => this.#replace(asked, judge, tell));
    const settled = turn.catch(() => {
      // Whoever asked is told, ignoring: the next one only waits for its turn.
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
        throw new CannotReplace("its folder on the host is another one");
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
    throw new CannotReplace("somebody else changes it all the time");
  }

  /** Undefined when the host's file changed meanwhile: what was judged is not what it would replace. */
  async #try(
    asked: Asked,
    { folder, stage, times }: Staging,
    judge: ReplacementJudge,
    tell: ExecRequest["onViolation"],
  ): Promise<boolean | undefined> {
    const target = below(folder, basename(asked.path));
    const old = readTarget(target) ?? nothingBeside(below(folder, SETTINGS));
    const violation = judge.judge({ path: asked.path, before: old.content, after: asked.content });
    if (violation !== undefined) {
      tell(violation);
      return false;
    }
    const name = `${STAGED}${uuidv7()}`;
    const staged = below(stage, name);
    try {
      const made = writeStaged(staged, asked.content, old.mode);
      await this.#seal(join(dirname(asked.path), STAGE, name), asked.path, made.ino);
      // Before it stands there: whoever finds it must know that it was judged.
      judge.accepted(asked.path, made, asked.content);
      const names = [name, basename(asked.path), ...old.identity, ...times];
      const ended = await exchange(this.#init, names, { folder, stage });
      // However the process ended: what stands there says whether it is done.
      if (lstatSync(target, { bigint: true, throwIfNoEntry: false })?.ino === made.ino) return true;
      if (ended !== "changed") throw new CannotReplace(ended);
      return undefined;
    } finally {
      rmSync(staged, { force: true });
    }
  }

  /** Also in worlds that begin meanwhile: one that is not there yet takes the host's file as it finds it. */
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
          // One that made the repository itself could write the new file before it has its name, and after.
          return world !== undefined && errno !== 0 && (errno !== NOT_SEALED || world.writes(target));
        });
      if (refusing?.world !== undefined) throw new CannotReplace(unsealedWords(refusing.world.project));
    }
  }
}

function unsealedWords(project: string): string {
  return `the new file could not be sealed in every world: commands of the one in '${project}' could write it. It can be changed once that world has ended: 'substrate world restart' in that folder, or 'substrate world restart --all'`;
}

/** The fields of a REPLACED. Never rejects: what went wrong is told as a violation. */
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
      // The frame's memory is used again while the file waits for its turn.
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
    const made = code === "ENOENT" ? `. A person makes one on the host: mkdir '${join(path, STAGE)}'` : "";
    throw new CannotReplace(
      `there is no folder '${STAGE}' beside it (${code}), in which the new file is made${made}`,
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

/** Undefined: nothing stands there. */
function readTarget(target: string): Target | undefined {
  if (lstatSync(target, { throwIfNoEntry: false }) === undefined) return undefined;
  const file = openSync(target, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stat = fstatSync(file);
    if (!stat.isFile() || stat.uid !== process.getuid?.())
      throw new CannotReplace("it is no file of this user's");
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

/** Words for `substrate-init exchange` where nothing is replaced. */
const NOTHING = ["0", "0", "0", "0"] as const;

/** The same for a file. */
function identityOf({ ino, size, mtimeNs }: BigIntStats): readonly string[] {
  return [`${ino}`, ...secondsAndRest(mtimeNs), `${size}`];
}

function secondsAndRest(time: bigint): readonly string[] {
  return [time / SECOND, time % SECOND].map(String);
}

/** Returns how it ended; with `changed` the file was another one by then, and is as it was. Throws when it does not start. */
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
  return `the files could not change names (${why})`;
}

function below(folder: number, name: string): string {
  return `/proc/self/fd/${folder}/${name}`;
}
