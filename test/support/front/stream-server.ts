/** A stand-in for the broker on a Unix socket: speaks GET /v1/stream as a test tells it to, right or wrong. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";

/** RFC 6455, 1.3. */
const MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

export type Frame = { readonly opcode: number; readonly payload: Buffer };

export const TEXT = 1;
export const BINARY = 2;
export const CLOSE = 8;
export const PING = 9;
export const PONG = 10;

/** One connection, from the test's side: of a stream, or of a call with a body. */
export class Call {
  readonly socket: Socket;
  /** The head of the request, and every frame behind it. */
  head = "";
  readonly frames: Frame[] = [];
  /** The bytes behind the head of a POST. */
  body = "";
  #bytes = Buffer.alloc(0);
  #waiting: (() => void)[] = [];
  closed = false;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on("data", (bytes: Buffer) => this.#take(bytes));
    socket.on("error", () => undefined);
    socket.on("drain", () => this.#wake());
    socket.on("close", () => {
      this.closed = true;
      this.#wake();
    });
  }

  /** Waits until the condition holds; rejects when the client is gone before. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds()) {
      if (this.closed) throw new Error("The client is gone");
      await this.#more();
    }
  }

  async untilClosed(): Promise<void> {
    while (!this.closed) await this.#more();
  }

  /** Waits until the client has read what was sent; false when the client is gone instead. */
  async untilDrained(): Promise<boolean> {
    while (!this.closed && this.socket.writableNeedDrain) await this.#more();
    return !this.closed;
  }

  /** The first message: the request. */
  async request(): Promise<Record<string, unknown>> {
    await this.until(() => this.frames.length > 0);
    return JSON.parse(String(this.frames[0]?.payload)) as Record<string, unknown>;
  }

  /** The document of a POST. */
  async posted(): Promise<Record<string, unknown>> {
    const [, length = "0"] = /content-length: *(\d+)/i.exec(this.head) ?? [];
    await this.until(() => Buffer.byteLength(this.body) >= Number(length));
    return JSON.parse(this.body) as Record<string, unknown>;
  }

  /** Answers 101 and says that the command has started. */
  async start(): Promise<Record<string, unknown>> {
    this.accept();
    const request = await this.request();
    this.text({ type: "started", span_id: "spn_1", world_id: "wld_1", decision: { verdict: "allow" } });
    return request;
  }

  accept(): void {
    const [, key = ""] = /sec-websocket-key: *(\S+)/i.exec(this.head) ?? [];
    const accept = createHash("sha1").update(`${key}${MAGIC}`).digest("base64");
    this.socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: ${accept}\r\n\r\n`,
    );
  }

  /** An answer of HTTP, instead of an upgrade. */
  answer(status: number, body: string): void {
    this.socket.end(
      `HTTP/1.1 ${status} No\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
    );
  }

  text(message: object | string): boolean {
    const text = typeof message === "string" ? message : JSON.stringify(message);
    return this.socket.write(frame(TEXT, Buffer.from(text)));
  }

  output(bytes: string | Buffer, channel = 1): boolean {
    return this.socket.write(frame(BINARY, Buffer.concat([Buffer.of(channel), Buffer.from(bytes)])));
  }

  exit(exit: number, more: object = {}): void {
    this.text({ type: "exit", exit, timed_out: false, duration_ms: 1, lines: [], ...more });
    this.socket.end(frame(CLOSE, Buffer.of(3, 232)));
  }

  /** The client's texts behind the request. */
  texts(): Record<string, unknown>[] {
    return this.frames
      .slice(1)
      .filter(({ opcode }) => opcode === TEXT)
      .map(({ payload }) => JSON.parse(payload.toString()) as Record<string, unknown>);
  }

  /** The bytes of standard input that have come. */
  input(): Buffer {
    const parts = this.frames.filter(({ opcode, payload }) => opcode === BINARY && payload[0] === 0);
    return Buffer.concat(parts.map(({ payload }) => payload.subarray(1)));
  }

  #take(bytes: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, bytes]);
    if (this.head === "") {
      const end = this.#bytes.indexOf("\r\n\r\n");
      if (end < 0) return;
      this.head = this.#bytes.subarray(0, end + 4).toString();
      this.#bytes = this.#bytes.subarray(end + 4);
    }
    if (this.head.startsWith("POST")) this.#takeBody();
    for (let one = readFrame(this.#bytes); one !== undefined; one = readFrame(this.#bytes)) {
      this.frames.push(one.frame);
      this.#bytes = this.#bytes.subarray(one.size);
    }
    this.#wake();
  }

  #takeBody(): void {
    this.body += this.#bytes.toString();
    this.#bytes = Buffer.alloc(0);
  }

  #more(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }
}

/** Reads a client's frame. Throws for one that is not masked. */
function readFrame(bytes: Buffer): { readonly frame: Frame; readonly size: number } | undefined {
  if (bytes.length < 2) return undefined;
  const [first = 0, second = 0] = bytes;
  if ((second & 0x80) === 0) throw new Error("The client's frame is not masked");
  const short = second & 0x7f;
  const at = short === 126 ? 4 : short === 127 ? 10 : 2;
  if (bytes.length < at + 4) return undefined;
  const length =
    short === 126 ? bytes.readUInt16BE(2) : short === 127 ? Number(bytes.readBigUInt64BE(2)) : short;
  const size = at + 4 + length;
  if (bytes.length < size) return undefined;
  const mask = bytes.subarray(at, at + 4);
  const payload = Buffer.from(bytes.subarray(at + 4, size));
  for (let i = 0; i < payload.length; i++) payload[i] = (payload[i] ?? 0) ^ (mask[i % 4] ?? 0);
  return { frame: { opcode: first & 0x0f, payload }, size };
}

/** A server's frame. `first` replaces the first byte: FIN and opcode. */
export function frame(opcode: number, payload: Buffer, first = 0x80 | opcode): Buffer {
  const { length } = payload;
  if (length < 126) return Buffer.concat([Buffer.of(first, length), payload]);
  const head = Buffer.alloc(length < 65_536 ? 4 : 10);
  head[0] = first;
  head[1] = length < 65_536 ? 126 : 127;
  if (length < 65_536) head.writeUInt16BE(length, 2);
  else head.writeBigUInt64BE(BigInt(length), 2);
  return Buffer.concat([head, payload]);
}

/** Listens, and gives each connection to `serve` once its head has come. An error of `serve` is in `errors`. */
export class StreamServer {
  readonly calls: Call[] = [];
  readonly errors: Error[] = [];
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async listen(path: string, serve: (call: Call) => Promise<void> | void): Promise<StreamServer> {
    const made = new StreamServer(createServer());
    made.#server.on("connection", (socket) => {
      const call = new Call(socket);
      made.calls.push(call);
      call
        .until(() => call.head !== "")
        .then(() => serve(call))
        .catch((error: unknown) =>
          made.errors.push(error instanceof Error ? error : new Error("Not an error")),
        );
    });
    made.#server.listen(path);
    await once(made.#server, "listening");
    return made;
  }

  close(): void {
    for (const { socket } of this.calls) socket.destroy();
    this.#server.close();
  }
}
