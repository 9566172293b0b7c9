/** What stands under many names and what it holds, looked at beside the broker: `substrate-init looks`. */
import { spawn } from "node:child_process";
import { hasContent, type Now } from "./now.ts";

export type Where = {
  readonly project: string;
  /** The `substrate-init` program. */
  readonly init: string;
};

/** More names than these are looked at by another process: starting one costs as much as some dozen looks here. */
export const MAX_HERE = 100;

/** `struct look` of world/init/looks.h. */
const LOOK_BYTES = 80;
const AT = { state: 0, mode: 4, size: 8, digest: 16 } as const;
const STATE = { gone: 0, unseen: 1, digest: 3 } as const;

/** What was seen under each of the names that were asked for, by their place in that list. */
export class Looks {
  readonly #answer: Buffer;

  constructor(answer: Buffer) {
    this.#answer = answer;
  }

  /** "gone": nothing, or only behind a link; "unseen": nobody can look there. */
  at(place: number): Now | "gone" | "unseen" {
    const at = place * LOOK_BYTES;
    const state = this.#answer.readUInt32LE(at + AT.state);
    if (state === STATE.gone) return "gone";
    if (state === STATE.unseen) return "unseen";
    const mode = this.#answer.readUInt32LE(at + AT.mode);
    // In halves: a number of 64 bits would be made for each.
    const size =
      this.#answer.readUInt32LE(at + AT.size) + this.#answer.readUInt32LE(at + AT.size + 4) * 2 ** 32;
    if (!hasContent(mode)) return { mode, size, stats: undefined, content: "" };
    const read = state === STATE.digest;
    const content = read ? this.#answer.toString("latin1", at + AT.digest, at + LOOK_BYTES) : null;
    return { mode, size, stats: undefined, content };
  }
}

/**
 * `names` are relative to the project, one letter for each byte; no link on the way is followed. Many names would hold the
 * broker up, and a small program looks at them in less time. Rejects when it cannot be started or does not end well.
 */
export async function looksBeside(
  where: Where,
  names: readonly string[],
  signal: AbortSignal,
): Promise<Looks> {
  const child = spawn(where.init, ["looks", where.project], {
    stdio: ["pipe", "pipe", "ignore"],
    env: {},
    cwd: "/",
    detached: true,
    signal,
  });
  const pieces: Buffer[] = [];
  child.stdout.on("data", (piece: Buffer) => pieces.push(piece));
  child.stdin.on("error", () => {
    // It has ended, which "close" tells, ignoring.
  });
  const ended = new Promise<void>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      if (code === 0) resolve();
      else reject(new Error(`'${where.init} looks' ended with ${code}`));
    });
  });
  child.stdin.end(Buffer.from(`${names.join("\0")}\0`, "latin1"));
  await ended;
  const answer = Buffer.concat(pieces);
  if (answer.length !== names.length * LOOK_BYTES)
    throw new Error(`'${where.init} looks' said ${answer.length} bytes of ${names.length} names`);
  return new Looks(answer);
}
