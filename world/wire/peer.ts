/** One end of the connection between a broker and a world agent. */
import type { RawData, WebSocket } from "ws";
import { abortError, WorldUnavailable } from "../model/unavailable.ts";
import { decodeValue, encodeMessage } from "./codec.ts";

type Calls = Readonly<Record<string, { readonly asks: unknown; readonly answers: unknown }>>;
type Tells = Readonly<Record<string, unknown>>;

/** Answers calls of the other end. */
export type Answers<C extends Calls> = {
  readonly [Name in keyof C]: (
    asks: C[Name]["asks"],
    signal: AbortSignal,
  ) => C[Name]["answers"] | Promise<C[Name]["answers"]>;
};

/** Receives tells of the other end. */
export type Hears<T extends Tells> = { readonly [Name in keyof T]: (told: T[Name]) => void };

/** What a message is, and the document in it, before its bytes are decoded. */
export type Parsed = {
  readonly kind: "tell" | "call" | "answer";
  readonly name: string;
  readonly value: unknown;
};

export type Side<C extends Calls, T extends Tells> = {
  /** Returns what is wrong with a message, which then ends the connection. Absent: the other end is trusted as its user is. */
  readonly faultIn?: (parsed: Parsed) => string | undefined;
  readonly answers: Answers<C>;
  readonly hears: Hears<T>;
  /** The buffer is valid only during the call. */
  readonly onBytes: (kind: number, id: number, bytes: Buffer) => void;
};

/** Unsent bytes: windows bound what commands send, so more means that the other end does not read. */
const MOST_UNSENT = 64 * 1024 * 1024;

/** An end that is silent for {@link MOST_SILENT} beats is gone: a machine asleep, a broken forward. */
const BEAT_MS = 5000;
const MOST_SILENT = 3;

/** How long the other end may take to answer a close. */
const CLOSE_MS = 1000;

/** Bytes before the payload of a binary message: kind and number. */
const BYTES_HEADER = 5;

type Waiting = {
  readonly name: string;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: Error) => void;
};

type Refusal = {
  readonly name: string;
  readonly message: string;
  readonly hint?: string;
  readonly code?: string;
};

/** Calls and tells the other end (`C`, `T`), and serves it (`MyC`, `MyT`). */
export class Peer<C extends Calls, T extends Tells, MyC extends Calls, MyT extends Tells> {
  /** Settles with the cause when the connection is gone; never rejects. */
  readonly lost: Promise<string>;
  readonly #socket: WebSocket;
  readonly #side: Side<MyC, MyT>;
  readonly #waiting = new Map<number, Waiting>();
  readonly #serving = new Map<number, AbortController>();
  readonly #beat: NodeJS.Timeout;
  #last = 0;
  #silent = 0;
  #loss: string | undefined;
  #lose: (cause: string) => void = () => {};

  constructor(socket: WebSocket, side: Side<MyC, MyT>) {
    this.#socket = socket;
    this.#side = side;
    this.lost = new Promise((resolve) => {
      this.#lose = resolve;
    });
    socket.on("message", (data, isBinary) => this.#take(data, isBinary));
    socket.on("pong", () => {
      this.#silent = 0;
    });
    socket.on("ping", () => {
      this.#silent = 0;
    });
    socket.on("error", (error) => this.#over(error.message));
    socket.on("close", (_code, reason) =>
      this.#over(reason.length > 0 ? reason.toString() : "it was closed"),
    );
    this.#beat = setInterval(() => this.#watch(), BEAT_MS).unref();
  }

  /** Whether unsent bytes pile up: what may be dropped should be. */
  get isSlow(): boolean {
    return this.#socket.bufferedAmount > 1024 * 1024;
  }

  /** Rejects with the other end's error, the abort, or the loss of the connection. */
  call<Name extends keyof C & string>(
    name: Name,
    asks: C[Name]["asks"],
    signal?: AbortSignal,
  ): Promise<C[Name]["answers"]> {
    if (this.#loss !== undefined) return Promise.reject(lostError(this.#loss));
    if (signal?.aborted === true) return Promise.reject(abortError(signal));
    this.#last += 1;
    const call = this.#last;
    return new Promise<unknown>((resolve, reject) => {
      const onAbort = (): void => {
        this.#waiting.delete(call);
        this.#send({ cancel: call });
        reject(signal === undefined ? new Error("Aborted") : abortError(signal));
      };
      const settled = (act: () => void): void => {
        signal?.removeEventListener("abort", onAbort);
        act();
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#waiting.set(call, {
        name,
        resolve: (answer) => settled(() => resolve(answer)),
        reject: (error) => settled(() => reject(error)),
      });
      this.#send({ call, name, asks });
    });
  }

  tell<Name extends keyof T & string>(name: Name, told: T[Name]): void {
    this.#send({ tell: name, told });
  }

  bytes(kind: number, id: number, bytes: Uint8Array): void {
    const message = Buffer.allocUnsafe(BYTES_HEADER + bytes.length);
    message.writeUInt8(kind, 0);
    message.writeUInt32LE(id, 1);
    message.set(bytes, BYTES_HEADER);
    this.#write(message);
  }

  /** Closes the connection; the other end hears the cause. */
  close(cause: string, code = 1000): void {
    if (this.#loss !== undefined) return;
    // A reason has at most 123 bytes (RFC 6455, 5.5).
    const reason = Buffer.from(cause)
      .subarray(0, 120)
      .toString("utf8")
      .replace(/\uFFFD$/, "");
    this.#socket.close(code, reason);
    setTimeout(() => this.#socket.terminate(), CLOSE_MS).unref();
    this.#over(cause);
  }

  #send(message: object): void {
    this.#write(encodeMessage(message));
  }

  #write(message: string | Buffer): void {
    if (this.#loss !== undefined) return;
    if (this.#socket.bufferedAmount > MOST_UNSENT) return this.#break("the other end reads nothing");
    this.#socket.send(message);
  }

  #watch(): void {
    this.#silent += 1;
    if (this.#silent > MOST_SILENT) return this.#break("the other end is silent");
    this.#socket.ping();
  }

  #take(data: RawData, isBinary: boolean): void {
    this.#silent = 0;
    if (this.#loss !== undefined) return;
    try {
      const bytes = data as Buffer;
      if (isBinary)
        this.#side.onBytes(bytes.readUInt8(0), bytes.readUInt32LE(1), bytes.subarray(BYTES_HEADER));
      else this.#takeText(JSON.parse(bytes.toString("utf8")) as Readonly<Record<string, unknown>>);
    } catch (error) {
      this.#break(`it sent what cannot be read: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  #takeText(message: Readonly<Record<string, unknown>>): void {
    const { call, answer, cancel, tell, name, asks, told, result, refusal } = message;
    if (typeof tell === "string")
      return this.#hear(tell, this.#read({ kind: "tell", name: tell, value: told }));
    if (typeof call === "number" && typeof name === "string")
      return void this.#answer(call, name, this.#read({ kind: "call", name, value: asks }));
    if (typeof cancel === "number") return this.#serving.get(cancel)?.abort(new Error("The caller gave up"));
    if (typeof answer !== "number") throw new RangeError("a message is neither call, answer nor tell");
    const waiting = this.#waiting.get(answer);
    this.#waiting.delete(answer);
    // The caller has given up meanwhile.
    if (waiting === undefined) return;
    if (refusal !== undefined) return waiting.reject(errorOf(refusal));
    try {
      waiting.resolve(this.#read({ kind: "answer", name: waiting.name, value: result }));
    } catch (error) {
      waiting.reject(lostError("its answer cannot be read"));
      throw error;
    }
  }

  #read(parsed: Parsed): unknown {
    const fault = this.#side.faultIn?.(parsed);
    if (fault !== undefined) throw new RangeError(`${parsed.kind} '${parsed.name}': ${fault}`);
    return decodeValue(parsed.value);
  }

  #hear(name: string, told: unknown): void {
    const { hears } = this.#side;
    if (!Object.hasOwn(hears, name)) throw new RangeError(`Unknown tell '${name}'`);
    hears[name as keyof MyT](told as MyT[keyof MyT]);
  }

  async #answer(answer: number, name: string, asks: unknown): Promise<void> {
    const serving = new AbortController();
    this.#serving.set(answer, serving);
    try {
      const { answers } = this.#side;
      if (!Object.hasOwn(answers, name)) throw new RangeError(`Unknown call '${name}'`);
      const result = await answers[name as keyof MyC](asks, serving.signal);
      this.#send({ answer, result });
    } catch (error) {
      this.#send({ answer, refusal: refusalOf(error) });
    } finally {
      this.#serving.delete(answer);
    }
  }

  #break(cause: string): void {
    this.#socket.terminate();
    this.#over(cause);
  }

  #over(cause: string): void {
    if (this.#loss !== undefined) return;
    this.#loss = cause;
    clearInterval(this.#beat);
    for (const { reject } of this.#waiting.values()) reject(lostError(cause));
    this.#waiting.clear();
    for (const serving of this.#serving.values()) serving.abort(lostError(cause));
    this.#lose(cause);
  }
}

function refusalOf(error: unknown): Refusal {
  if (!(error instanceof Error)) return { name: "Error", message: String(error) };
  const { code } = error as NodeJS.ErrnoException;
  return {
    name: error.name,
    message: error.message,
    ...(error instanceof WorldUnavailable ? { hint: error.hint } : {}),
    ...(typeof code === "string" ? { code } : {}),
  };
}

/** Reads a refusal, whatever it holds. */
function errorOf(refusal: unknown): Error {
  const { name, message, hint, code } = Object(refusal) as Readonly<Record<keyof Refusal, unknown>>;
  if (name === "WorldUnavailable")
    return new WorldUnavailable(String(message), typeof hint === "string" ? hint : "");
  return Object.assign(new Error(String(message)), typeof code === "string" ? { code } : {});
}

function lostError(cause: string): WorldUnavailable {
  return new WorldUnavailable(
    `The connection to the world agent is gone: ${cause}`,
    "Try again: the broker connects again by itself",
  );
}
