/** The client's side of `GET /v1/stream`. */
import { connect } from "node:net";
import { WebSocket } from "ws";
import type { ErrorReply } from "../../schemas/generated/types.ts";
import { type Answer, connectionError } from "./client.ts";

/** First bytes of binary messages. */
const STDIN = Buffer.from([0]);
const STDOUT = 1;
const STDERR = 2;

/** A close code (RFC 6455, 7.4.1). */
const TOO_BIG = 1009;

export type StreamEvents = {
  readonly started: (message: object) => void;
  /** `taken` is called when the next output may come. */
  readonly output: (stream: "stdout" | "stderr", bytes: Buffer, taken: () => void) => void;
  readonly inputTaken: (bytes: number) => void;
  /** A person must answer before the command goes on (`questions: true`). */
  readonly asked?: (approvalId: string) => void;
  /** Ctrl-Z has stopped the command (`job_control: true`); the signal SIGCONT continues it. */
  readonly stopped?: () => void;
  /** What became of a shell's line. */
  readonly line?: (message: LineMessage) => void;
  /** Sentences about what happened in the shell until the end of its last line. */
  readonly lineEnded?: (sentences: readonly string[]) => void;
};

export type LineMessage = {
  readonly run?: "here" | "apart";
  /** Where a line runs apart. */
  readonly cwd?: string;
  readonly error?: ErrorReply["error"];
};

/** A command with its input and output, over one WebSocket. */
export class Stream {
  /** How the command ended: status 200 and the exit message, or the status and document of a refusal. Rejects for a broken connection. */
  readonly ended: Promise<Answer>;
  readonly #socket: WebSocket;
  readonly #events: StreamEvents;
  #end: (answer: Answer) => void = () => {};
  #fail: (error: Error) => void = () => {};
  #untaken = 0;

  /**
   * @param path `/v1/stream`, or `/v1/stream/SPAN` to attach
   * @param first the first message; undefined when attaching
   */
  constructor(
    socketPath: string,
    path: string,
    first: object | undefined,
    events: StreamEvents,
    requestId?: string,
  ) {
    this.#events = events;
    this.ended = new Promise((resolve, reject) => {
      this.#end = resolve;
      this.#fail = reject;
    });
    this.#socket = new WebSocket(`ws://localhost${path}`, {
      createConnection: () => connect(socketPath),
      perMessageDeflate: false,
      headers: requestId === undefined ? {} : { "x-request-id": requestId },
    });
    this.#socket.on("open", () => {
      if (first !== undefined) this.send(first);
    });
    this.#socket.on("message", (data, isBinary) => this.#take(data as Buffer, isBinary));
    this.#socket.on("unexpected-response", (_request, response) => {
      const parts: Buffer[] = [];
      response.on("data", (part: Buffer) => parts.push(part));
      response.on("end", () => this.#answer(response.statusCode ?? 0, Buffer.concat(parts)));
    });
    this.#socket.on("error", (error) => this.#fail(connectionError(socketPath, error)));
    this.#socket.on("close", (code) =>
      this.#fail(
        code === TOO_BIG
          ? new Error("A message of more than 10 MiB was sent, and the broker takes none: write it to a file")
          : Object.assign(new Error("The broker closed the connection before the command had ended"), {
              code: "ECONNRESET",
            }),
      ),
    );
  }

  /** Sends a text message. */
  send(message: object): void {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  /** Sends input. */
  type(bytes: Buffer): void {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(Buffer.concat([STDIN, bytes]));
  }

  /** Closes the connection: the command ends, or is detached. */
  close(): void {
    this.#socket.terminate();
  }

  #take(data: Buffer, isBinary: boolean): void {
    if (isBinary) return this.#takeOutput(data);
    const message = JSON.parse(data.toString("utf8")) as {
      type: string;
      bytes?: number;
      approval_id?: string;
      lines?: string[];
    };
    if (message.type === "started") this.#events.started(message);
    else if (message.type === "stdin_taken") this.#events.inputTaken(message.bytes ?? 0);
    else if (message.type === "question") this.#events.asked?.(message.approval_id ?? "");
    else if (message.type === "stopped") this.#events.stopped?.();
    else if (message.type === "line") this.#events.line?.(message as LineMessage);
    else if (message.type === "line_end") this.#events.lineEnded?.(message.lines ?? []);
    else if (message.type === "exit") this.#end({ status: 200, document: message });
    else if (message.type === "error") this.#end({ status: 400, document: message });
  }

  #takeOutput(data: Buffer): void {
    const stream = data[0] === STDOUT ? "stdout" : data[0] === STDERR ? "stderr" : undefined;
    if (stream === undefined) return;
    this.#untaken += 1;
    // Nothing more is read until then, so the broker waits, and with it the command.
    this.#socket.pause();
    this.#events.output(stream, data.subarray(1), () => {
      this.#untaken -= 1;
      if (this.#untaken === 0) this.#socket.resume();
    });
  }

  #answer(status: number, body: Buffer): void {
    try {
      this.#end({ status, document: JSON.parse(body.toString("utf8")) });
    } catch {
      this.#fail(new Error(`The broker's answer is not JSON: ${body.subarray(0, 200).toString("utf8")}`));
    }
  }
}
