/** Asks one world's init about folders, and waits for its answers. */
import { TAG } from "../../schemas/generated/frames.ts";
import { encodeFields, type Field } from "./frame-codec.ts";

type Kind<Answer> = {
  /** Number of the frame that asks. */
  readonly frame: number;
  /** Time limit; a silent world is ended. */
  readonly patienceMs: number;
  readonly read: (payload: Buffer) => Answer;
  /** The answer of a world that has ended, with its processes. */
  readonly gone: Answer;
};

export class FolderQuestions<Answer> {
  readonly #kind: Kind<Answer>;
  readonly #send: (frame: Buffer) => void;
  readonly #giveUp: () => void;
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  #closed = false;
  #last = 0;

  /** `giveUp` ends the world. */
  constructor(kind: Kind<Answer>, send: (frame: Buffer) => void, giveUp: () => void) {
    this.#kind = kind;
    this.#send = send;
    this.#giveUp = giveUp;
  }

  /** Never rejects. */
  ask(folders: readonly string[]): Promise<Answer> {
    if (this.#closed) return Promise.resolve(this.#kind.gone);
    this.#last = (this.#last % 0xffff_ffff) + 1;
    const question = this.#last;
    return new Promise((resolve) => {
      const late = setTimeout(this.#giveUp, this.#kind.patienceMs);
      this.#waiting.set(question, (answer) => {
        clearTimeout(late);
        resolve(answer);
      });
      const fields = folders.map((folder): Field => [TAG.PATH, folder]);
      this.#send(encodeFields(this.#kind.frame, question, fields));
    });
  }

  take(question: number, payload: Buffer): void {
    this.#answer(question, this.#kind.read(payload));
  }

  /** Answers pending questions: the world and its processes are gone. */
  close(): void {
    this.#closed = true;
    for (const question of [...this.#waiting.keys()]) this.#answer(question, this.#kind.gone);
  }

  #answer(question: number, answer: Answer): void {
    const resolve = this.#waiting.get(question);
    this.#waiting.delete(question);
    resolve?.(answer);
  }
}
