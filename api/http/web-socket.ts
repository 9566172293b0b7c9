/** `GET /v1/stream` and `GET /v1/stream/:span_id`: a command with its input and output as a WebSocket. */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { WebSocket, WebSocketServer } from "ws";
import type { LiveClient, LiveCommand } from "../../broker/live/live-command.ts";
import { isTypeable, typedAheadEnds, typedLine } from "../../broker/live/shell-script.ts";
import { isRefusal, quoted, type Refusal, refusal } from "../../broker/model/refusal.ts";
import type { StreamControl } from "../../schemas/generated/types.ts";
import { validateStreamControl } from "../../schemas/generated/validators/stream-control.js";
import { MAX_BODY, parseJson } from "./body.ts";
import { turnFor } from "../../broker/model/turns.ts";
import { noRoom } from "./bounds.ts";
import { logBug } from "./bug.ts";
import { maySee } from "./caller.ts";
import type { Context } from "./context.ts";
import { checked } from "./valid-request.ts";
import { exitMessage, noticeWords } from "./exit-message.ts";
import { OutputMessages } from "./output-messages.ts";
import { streamOrder } from "./stream-order.ts";
import { liveCommand } from "./run-live.ts";
import { errorMessage } from "./server-sent-events.ts";

/** First bytes of binary messages. */
const STDIN = 0;
const STDOUT = 1;
const STDERR = 2;

/** Close codes (RFC 6455, 7.4.1). */
const NORMAL = 1000;
const REFUSED = 1008;
const BROKEN = 1011;

/** Bytes of a short frame before its data: two, and the mask (RFC 6455, 5.2). */
const CLIENT_HEADER = 6;

/** A paused connection is not read, so its end is only noticed by writing. */
const PING_MS = 500;

/** Unread messages, beside the output of a command, whose window is smaller; more ends the connection. */
const MOST_UNREAD = 4 * 1024 * 1024;

/** Pings and pongs of one connection in a second; each has an event of its own, and 10,000 fit into one read. */
const MOST_PINGS = 1000;

/** Parts of one message: each costs the broker a hundred bytes beside its own. */
const MOST_PARTS = 1024;

/** How long a connection may be open without its first message. */
const FIRST_MESSAGE_MS = 30_000;

/** How long a client may take to close its side after the last message. */
const CLOSE_MS = 2000;

const server = new WebSocketServer({
  noServer: true,
  perMessageDeflate: false,
  maxPayload: MAX_BODY,
  maxFragments: MOST_PARTS,
});

/**
 * Serves a request for `/v1/stream` that asks for a WebSocket.
 * @param span the command to attach to; undefined: the first message gives a new command
 */
export function serveWebSocket(
  context: Context,
  upgrade: {
    readonly request: IncomingMessage;
    readonly socket: Duplex;
    readonly head: Buffer;
  },
  id: string,
  span: string | undefined,
): void {
  // A client that sent the first message along gets the answer and `started` in one write: it wakes once.
  if (upgrade.head.length > 0) {
    upgrade.socket.cork();
    setImmediate(() => upgrade.socket.uncork());
  }
  server.handleUpgrade(upgrade.request, upgrade.socket, upgrade.head, (socket) => {
    const connection = new Connection(context, socket, id);
    // Before ws has its turn, which puts the parts of a message together.
    upgrade.socket.prependListener("data", (chunk: Buffer) => connection.receiving(chunk.length));
    if (span !== undefined) connection.attach(span);
  });
}

class Connection {
  readonly #context: Context;
  readonly #socket: WebSocket;
  readonly #id: string;
  readonly #client: LiveClient;
  readonly #output: OutputMessages;
  #command: LiveCommand | undefined;
  /** Messages that came while a long first one waited for its turn. */
  #early: [bytes: Buffer, isBinary: boolean][] | undefined;
  #tellsTaken = false;
  #tellsQuestions = false;
  #isOver = false;
  /** Bytes of the first message, and of one that has not come whole. */
  #first = 0;
  #partial = 0;
  /** Pings and pongs since the beginning of a second. */
  #pinged = 0;
  #second = 0;
  readonly #firstMessage: NodeJS.Timeout;
  #pings: NodeJS.Timeout | undefined;

  constructor(context: Context, socket: WebSocket, id: string) {
    this.#context = context;
    this.#socket = socket;
    this.#id = id;
    this.#output = new OutputMessages((message, sent) => this.#sendBytes(message, sent));
    this.#client = {
      started: (start) => this.#tell({ type: "started", ...start }),
      output: (stream, bytes, taken) => this.#output.add(stream === "stdout" ? STDOUT : STDERR, bytes, taken),
      inputTaken: (bytes) => {
        if (this.#tellsTaken) this.#tell({ type: "stdin_taken", bytes });
      },
      stopped: (signal) => this.#tell({ type: "stopped", signal }),
      pause: (isPaused) => this.#pause(isPaused),
      asked: (approval) => {
        if (this.#tellsQuestions) this.#tell({ type: "question", approval_id: approval });
      },
      ended: (outcome) => {
        if (outcome.kind === "refused") return this.#refuse(outcome.error);
        const { complaint } = outcome;
        if (complaint !== undefined && complaint.length > 0) this.#output.add(STDERR, complaint, () => {});
        this.#finish(exitMessage(outcome), NORMAL);
      },
    };
    this.#firstMessage = setTimeout(
      () => this.#refuse(misplaced("The first message did not come in time")),
      FIRST_MESSAGE_MS,
    ).unref();
    socket.on("message", (data, isBinary) => {
      this.#partial = 0;
      try {
        if (!this.#isOver) this.#take(bytesOf(data), isBinary);
      } catch (error) {
        this.#fail(logBug(this.#context.log, this.#id, error));
      }
    });
    // No parts of a message: whoever pings for days must not fill the room.
    for (const name of ["ping", "pong"] as const)
      socket.on(name, (data: Buffer) => {
        this.#partial = Math.max(0, this.#partial - data.length - CLIENT_HEADER);
        if (this.#isOver || this.#pingsInSecond() <= MOST_PINGS) return;
        this.#fail(misplaced(`More than ${MOST_PINGS} pings or pongs came in a second`));
        socket.pause();
      });
    socket.once("close", () => {
      clearTimeout(this.#firstMessage);
      clearInterval(this.#pings);
      this.#context.bodies.release(this);
      this.#command?.leave(this.#client);
    });
    // A broken connection closes too.
    socket.on("error", () => {});
  }

  attach(span: string): void {
    const { broker, caller } = this.#context;
    const command = broker.liveCommands.of(span);
    clearTimeout(this.#firstMessage);
    // Whoever attaches can type: reading another label's spans is less. A person's command is the person's.
    const isTheirs = command?.isPersons !== true || caller.kind === "operator";
    if (command === undefined || !maySee(caller, command.agent) || !command.isDetachable || !isTheirs) {
      return this.#refuse(
        refusal(
          "not_found",
          `No running or just ended command with a stream has the span ${quoted(span)}`,
          "'substrate trace list' shows what ran; a command can be attached to if it was started with on_disconnect 'detach'",
        ),
      );
    }
    this.#command = command;
    this.#tellsTaken = true;
    if (command.attach(this.#client)) {
      if (command.outcome !== undefined) broker.liveCommands.forget(span);
      return;
    }
    this.#command = undefined;
    this.#refuse(
      refusal(
        "busy",
        `Another client is attached to the command ${quoted(span)}`,
        "Let it disconnect first",
        { retry_after_ms: 1000 },
      ),
    );
  }

  #pingsInSecond(): number {
    const now = performance.now();
    if (now - this.#second > 1000) [this.#second, this.#pinged] = [now, 0];
    return ++this.#pinged;
  }

  receiving(bytes: number): void {
    this.#partial += bytes;
    if (this.#isOver || this.#context.bodies.keep(this, this.#first + this.#partial)) return;
    this.#fail(noRoom());
    this.#socket.pause();
  }

  #take(bytes: Buffer, isBinary: boolean): void {
    if (this.#early !== undefined) return void this.#early.push([bytes, isBinary]);
    if (this.#command === undefined) {
      if (!isBinary) return this.#beginInTurn(bytes);
      return this.#refuse(misplaced("The first message must be text: an execute request"));
    }
    if (!isBinary) return this.#control(this.#command, bytes);
    if (bytes[0] === STDIN) this.#command.type(bytes.subarray(1));
    else
      this.#fail(misplaced(`A binary message must begin with the byte 0, received ${bytes[0] ?? "no byte"}`));
  }

  #beginInTurn(bytes: Buffer): void {
    clearTimeout(this.#firstMessage);
    const wait = turnFor(bytes.length);
    if (wait === undefined) return this.#begin(bytes);
    this.#early = [];
    this.#socket.pause();
    void wait.then(() => {
      const early = this.#early ?? [];
      this.#early = undefined;
      if (this.#isOver || this.#socket.readyState !== WebSocket.OPEN) return;
      this.#socket.resume();
      try {
        this.#begin(bytes);
        for (const [message, binary] of early) if (!this.#isOver) this.#take(message, binary);
      } catch (error) {
        this.#fail(logBug(this.#context.log, this.#id, error));
      }
    });
  }

  #begin(bytes: Buffer): void {
    this.#first = bytes.length;
    const sent = parseJson(bytes);
    const order = isRefusal(sent) ? sent : streamOrder(sent.document, this.#context.caller, true);
    if (isRefusal(order)) return this.#refuse(order);
    this.#tellsTaken = order.tellsTaken;
    this.#tellsQuestions = order.tellsQuestions;
    const { command, run } = liveCommand(this.#context, order, this.#client, this.#id);
    this.#command = command;
    run().catch((error: unknown) => this.#refuse(logBug(this.#context.log, this.#id, error)));
  }

  #control(command: LiveCommand, bytes: Buffer): void {
    const sent = parseJson(bytes);
    const control = isRefusal(sent) ? sent : checked<StreamControl>(sent.document, validateStreamControl);
    if (isRefusal(control)) return this.#fail(control);
    const { type, cols = 0, rows = 0, signal } = control.valid;
    if (type === "stdin_eof") command.endInput();
    else if (type === "line")
      this.#line(command, control.valid).catch((error: unknown) =>
        this.#fail(logBug(this.#context.log, this.#id, error)),
      );
    else if (type === "line_end") {
      const notices = command.lines?.ended(control.valid.exit ?? 0);
      if (notices === undefined) this.#fail(noShell());
      else {
        command.type(typedAheadEnds());
        this.#tell({ type: "line_end", lines: notices.map(noticeWords) });
      }
    } else if (type === "resize") command.resize({ columns: cols, rows });
    else if (signal !== undefined) command.interrupt(signal);
  }

  /** Judges a shell's line and types it; the client hears what became of it. */
  async #line(
    command: LiveCommand,
    { cmd = "", cwd = "/", call, approval_wait_ms: approvalWaitMs = 0 }: StreamControl,
  ): Promise<void> {
    const { lines } = command;
    if (lines === undefined) return this.#fail(noShell());
    if (!isTypeable(cmd)) return this.#tell({ type: "line", error: notTypeable() });
    // Nothing to judge: the shell tells of jobs that have ended, and shows another prompt.
    if (cmd.trim() === "") {
      command.type(typedLine(""));
      return this.#tell({ type: "line", run: "here" });
    }
    const verdict = await lines.judge({ cmd, cwd, call, approvalWaitMs }, command.signal);
    if (isRefusal(verdict)) return this.#tell({ type: "line", error: verdict });
    if (verdict.run === "here") command.type(typedLine(cmd));
    this.#tell({ type: "line", ...verdict });
  }

  /** Ends a connection that cannot be understood, and with it the command, as if the client had left. */
  #fail(error: Refusal): void {
    this.#command?.leave(this.#client);
    this.#refuse(error);
  }

  #refuse(error: Refusal): void {
    this.#finish(errorMessage(error), error.code === "internal" ? BROKEN : REFUSED);
  }

  /** Sends the last message, and waits for a slow reader: what it has not taken is bounded by the command's window. */
  #finish(message: object, code: number): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#firstMessage);
    this.#output.flush();
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    this.#socket.send(JSON.stringify(message), () => {
      this.#socket.close(code);
      setTimeout(() => this.#socket.terminate(), CLOSE_MS).unref();
    });
  }

  #tell(message: object): void {
    if (this.#isOver || this.#socket.readyState !== WebSocket.OPEN) return;
    this.#output.flush();
    // A client that asks and never reads the answers.
    if (this.#socket.bufferedAmount > MOST_UNREAD) return this.#socket.terminate();
    this.#socket.send(JSON.stringify(message));
  }

  /** `sent` is called when the kernel has the bytes, and also when the connection is broken. */
  #sendBytes(message: Buffer, sent: () => void): void {
    if (this.#socket.readyState !== WebSocket.OPEN) return sent();
    this.#socket.send(message, { binary: true }, () => sent());
  }

  #pause(isPaused: boolean): void {
    clearInterval(this.#pings);
    if (!isPaused) return this.#socket.resume();
    this.#socket.pause();
    this.#pings = setInterval(() => this.#socket.ping(), PING_MS);
  }
}

function noShell(): Refusal {
  return refusal(
    "invalid_request",
    "The command is not a session_shell",
    "Start it with 'session_shell': true",
  );
}

function notTypeable(): Refusal {
  return refusal(
    "invalid_request",
    "cmd: must not contain control characters, because a terminal acts on them",
    "Write them as escapes, such as $'\\x1b'",
    { path: "cmd", exit: 125 },
  );
}

function misplaced(message: string): Refusal {
  return refusal("invalid_request", message, "See /v1/stream in api/README.md");
}

function bytesOf(data: WebSocket.RawData): Buffer {
  if (Buffer.isBuffer(data)) return data;
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data);
}
