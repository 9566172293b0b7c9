import { FRAME, TAG } from "../../schemas/generated/frames.ts";
import type { Asker } from "../model/network.ts";
import { decodeFields, decodeNumber, encodeNumber } from "./frame-codec.ts";

/** The command, by number, that has a socket open. */
export type Owner = { readonly command: number; readonly pid: number; readonly program: string };

/** Marks a port of TCP in ASKER. */
const ASKED_BY_TCP = 65_536;

/** Bound of pending questions: init scans all descriptors of the world for each. Further questions are answered with undefined. */
const MOST_ASKED = 1024;

/** Asks init for the owners of sockets. */
export class Owners {
  readonly #send: (frame: Buffer) => void;
  readonly #waiting = new Map<number, (owner: Owner | undefined) => void>();
  #last = 0;

  constructor(send: (frame: Buffer) => void) {
    this.#send = send;
  }

  /**
   * Settles with undefined when no process has the socket open any more, when the world is gone, or when too many questions are
   * pending. Never rejects.
   */
  ask(inode: number): Promise<Owner | undefined> {
    return this.#ask(FRAME.OWNER, inode);
  }

  /** Asks for the owner of a socket that asked the world's name server; settles as `ask`. */
  askFor({ transport, port }: Asker): Promise<Owner | undefined> {
    return this.#ask(FRAME.ASKER, transport === "tcp" ? port + ASKED_BY_TCP : port);
  }

  #ask(frame: number, value: number): Promise<Owner | undefined> {
    if (this.#waiting.size >= MOST_ASKED) return Promise.resolve(undefined);
    this.#last = (this.#last % 0xffff_ffff) + 1;
    const question = this.#last;
    return new Promise((resolve) => {
      this.#waiting.set(question, resolve);
      this.#send(encodeNumber(frame, question, value));
    });
  }

  take(question: number, payload: Buffer): void {
    const answer = this.#waiting.get(question);
    this.#waiting.delete(question);
    answer?.(readOwner(payload));
  }

  close(): void {
    for (const answer of this.#waiting.values()) answer(undefined);
    this.#waiting.clear();
  }
}

function readOwner(payload: Buffer): Owner | undefined {
  const fields = new Map(decodeFields(payload));
  const [command, pid] = [fields.get(TAG.COMMAND), fields.get(TAG.OWNER_PID)];
  if (command === undefined || pid === undefined) return undefined;
  const program = fields.get(TAG.PROGRAM)?.toString("utf8") ?? "";
  return { command: decodeNumber(command), pid: decodeNumber(pid), program };
}
