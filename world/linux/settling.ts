/** Asks one world's init to seal git folders made by commands (world/native/seals/settle.h). */
import { FRAME, TAG } from "../../schemas/generated/frames.ts";
import type { Settled } from "../model/world.ts";
import { errnoName } from "../model/errno.ts";
import { decodeFields, decodeNumber, encodeFields, type Field } from "./frame-codec.ts";

/** Time limit; init copies a few files per folder. A silent world cannot be trusted with git folders, so it is ended. */
const PATIENCE_MS = 10_000;

export class Settling {
  readonly #send: (frame: Buffer) => void;
  readonly #giveUp: () => void;
  readonly #waiting = new Map<number, (settled: Settled) => void>();
  #closed = false;
  #last = 0;

  /** `giveUp` ends the world. */
  constructor(send: (frame: Buffer) => void, giveUp: () => void) {
    this.#send = send;
    this.#giveUp = giveUp;
  }

  ask(folders: readonly string[]): Promise<Settled> {
    if (this.#closed) return Promise.resolve({ sealed: [], unsealed: [] });
    this.#last = (this.#last % 0xffff_ffff) + 1;
    const question = this.#last;
    return new Promise((resolve) => {
      const late = setTimeout(this.#giveUp, PATIENCE_MS);
      this.#waiting.set(question, (settled) => {
        clearTimeout(late);
        resolve(settled);
      });
      const fields = folders.map((folder): Field => [TAG.PATH, folder]);
      this.#send(encodeFields(FRAME.SETTLE, question, fields));
    });
  }

  take(question: number, payload: Buffer): void {
    const fields = decodeFields(payload);
    const of = (wanted: number): readonly Buffer[] =>
      fields.filter(([tag]) => tag === wanted).map(([, bytes]) => bytes);
    const errors = of(TAG.ERRNO).map(decodeNumber);
    const unsealed = of(TAG.TARGET).map((folder, at) => ({
      folder: folder.toString("utf8"),
      why: errnoName(errors[at] ?? 0),
    }));
    this.#answer(question, { sealed: of(TAG.PATH).map((path) => path.toString("utf8")), unsealed });
  }

  /** Answers pending questions with empty lists: the world and its processes are gone. */
  close(): void {
    this.#closed = true;
    for (const question of [...this.#waiting.keys()]) this.#answer(question, { sealed: [], unsealed: [] });
  }

  #answer(question: number, settled: Settled): void {
    const resolve = this.#waiting.get(question);
    this.#waiting.delete(question);
    resolve?.(settled);
  }
}
