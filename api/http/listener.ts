/**
 * HTTP listeners, one per socket. The `direct` calls of `ROUTES` bypass Express: every command makes such calls, and routing in
 * Express costs a third of a millisecond. Express answers all other calls.
 */
import {
  type IncomingMessage,
  type RequestListener,
  Server,
  type ServerResponse,
  STATUS_CODES,
} from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { uuidv7 } from "uuidv7";
import type { Broker } from "../../broker/broker.ts";
import { sendRefusal } from "./answer.ts";
import { excessOf, tooLarge } from "./body.ts";
import { Room, REPLY_ROOM, SHORT_REPLY, tooManyWaiting, Turns, Unanswered } from "./bounds.ts";
import type { Caller } from "./caller.ts";
import { quoted, type Refusal, refusal } from "../../broker/model/refusal.ts";
import { logBug, sendBug } from "./bug.ts";
import type { Context, Log } from "./context.ts";
import { ROUTES } from "./routes.ts";
import { UnreadAnswers } from "./unread-answers.ts";
import type { serveWebSocket } from "./web-socket.ts";

const KEEP_ALIVE_MS = 120_000;

/** Creates a server for one kind of caller, not yet listening. */
export function createListener(broker: Broker, caller: () => Caller, log: Log): Server {
  const unread = new UnreadAnswers();
  const bodies = new Room();
  const replies = new Room(REPLY_ROOM, SHORT_REPLY);
  const context = (): Context => ({ broker, caller: caller(), log, unread, bodies, replies });
  const answer = directFirst(context, lazyExpress(context));
  const upgrade = upgradeOf();
  const server = new ApiServer({ keepAliveTimeout: KEEP_ALIVE_MS }, answer);
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    // Node has taken its own listener away: a client that has left already would end the broker.
    socket.on("error", () => socket.destroy());
    server.keep(socket);
    upgrade(context(), { request, socket, head });
  });
  server.on("checkContinue", (request, response) => {
    const excess = excessOf(request);
    if (excess === undefined) response.writeContinue();
    else {
      // The client withholds the body, so the connection cannot be reused.
      response.shouldKeepAlive = false;
      response.setHeader("x-request-id", uuidv7());
      return sendRefusal(response, tooLarge(excess));
    }
    answer(request, response);
  });
  server.on("checkExpectation", (request: IncomingMessage, response: ServerResponse) => {
    response.shouldKeepAlive = false;
    response.setHeader("x-request-id", requestIdOf(request));
    sendRefusal(response, unmetExpectation(request));
  });
  server.on("clientError", (error: Error, socket) => {
    if (socket.writable) socket.end(answerToNoHttp(error));
  });
  return server;
}

/** A server that also ends connections which became WebSockets: Node forgets those. */
class ApiServer extends Server {
  readonly #upgraded = new Set<Duplex>();

  keep(socket: Duplex): void {
    this.#upgraded.add(socket);
    socket.once("close", () => this.#upgraded.delete(socket));
  }

  override closeAllConnections(): void {
    super.closeAllConnections();
    for (const socket of this.#upgraded) socket.destroy();
  }
}

const STREAM = /^\/v1\/stream(?:\/([^/?]+))?$/;

type Upgrade = { readonly request: IncomingMessage; readonly socket: Duplex; readonly head: Buffer };

/** Makes a WebSocket of a connection; loaded at the first one, and once: import() costs 0.1 ms when it has nothing to load too. */
function upgradeOf(): (context: Context, connection: Upgrade) => void {
  let serve: typeof serveWebSocket | undefined;
  return (context, connection) => {
    const { id, span, reason } = wantedOf(connection);
    const { socket } = connection;
    if (reason !== undefined) return void socket.end(rawAnswer(400, reason, id));
    if (serve !== undefined) return serve(context, connection, id, span);
    import("./web-socket.ts").then(
      (loaded) => {
        serve = loaded.serveWebSocket;
        serve(context, connection, id, span);
      },
      (error: unknown) => socket.end(rawAnswer(500, logBug(context.log, id, error), id)),
    );
  };
}

/** The request's id and the span to attach to; or the reason of a refusal. */
function wantedOf({ request }: Upgrade): {
  readonly id: string;
  readonly span?: string | undefined;
  readonly reason?: Refusal;
} {
  const id = requestIdOf(request);
  const found = STREAM.exec(request.url ?? "");
  if (found === null || request.headers.upgrade?.toLowerCase() !== "websocket") {
    const wanted = `Only GET /v1/stream and GET /v1/stream/:span_id can be upgraded, to 'websocket'; received ${quoted(request.url)} and ${quoted(request.headers.upgrade)}`;
    return { id, reason: refusal("invalid_request", wanted, "Leave the header 'upgrade' out") };
  }
  return { id, span: found[1] };
}

function directFirst(context: () => Context, rest: RequestListener): RequestListener {
  const direct = new Map(
    ROUTES.flatMap((route) => (route.direct ? [[route.path, route.answer] as const] : [])),
  );
  const turns = new Turns();
  const unanswered = new Unanswered();
  return (request, response) => {
    const { socket } = request;
    // What was read together with the request for which the connection was closed.
    if (socket.destroyed) return;
    if (!unanswered.add(socket, response)) return void socket.destroy();
    response.setHeader("x-request-id", requestIdOf(request));
    const answer = request.method === "POST" ? direct.get(request.url ?? "") : undefined;
    const begin = (): void => {
      if (socket.destroyed) return;
      if (answer === undefined) return rest(request, response);
      const here = context();
      answer(here, request, response).catch((error: unknown) => sendBug(response, here.log, error));
    };
    if (!turns.take(answer === undefined ? "other" : "direct", begin))
      sendRefusal(response, tooManyWaiting());
  };
}

/** Time after the start in which most short-lived brokers have ended. */
const EXPRESS_LATEST_MS = 2000;

/**
 * Loads Express at the first call that is not `direct`, or soon after the start: loading takes a tenth of a start. Not later, because
 * a rebuild removes old bundles after a day. A failed import is tried again at the next call.
 */
function lazyExpress(context: () => Context): RequestListener {
  let app: Promise<RequestListener> | undefined;
  const load = (): Promise<RequestListener> => {
    app ??= import("./app.ts").then(
      ({ expressApp }) => expressApp(context),
      (error: unknown) => {
        app = undefined;
        throw error;
      },
    );
    return app;
  };
  setTimeout(() => {
    load().catch((error: unknown) => context().log.error({ err: error }, "Express cannot be loaded"));
  }, EXPRESS_LATEST_MS).unref();
  return (request, response) => {
    load().then(
      (answer) => answer(request, response),
      (error: unknown) => sendBug(response, context().log, error),
    );
  };
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * Takes the caller's request id if a UUID, else makes a new id. A terminal recognises the approvals of its own call by the id. Other
 * callers cannot guess a random UUID, and only the operator's socket shows request ids.
 */
function requestIdOf({ headers }: IncomingMessage): string {
  const sent = headers["x-request-id"];
  return typeof sent === "string" && UUID.test(sent) ? sent : uuidv7();
}

/** Refuses unknown `expect` headers: Node's own answer would lack body and request id. */
function unmetExpectation({ headers: { expect } }: IncomingMessage): Refusal {
  return refusal(
    "invalid_request",
    `Cannot serve the header 'expect': only 'expect: 100-continue' is accepted, received ${quoted(expect)}`,
    "Leave the header out",
  );
}

function answerToNoHttp(error: Error): string {
  const reason = refusal(
    "invalid_request",
    `Cannot read the request: ${error.message}`,
    "Send HTTP/1.1, with headers of at most 16 KiB",
  );
  return rawAnswer(400, reason, uuidv7());
}

/** Answers a connection beyond the bounds of its socket, without waiting for its request. */
export function refuseConnection(socket: Socket): void {
  const reason = refusal(
    "busy",
    "The clients of the agents' sockets hold too many connections to the broker",
    "Try again when others have closed",
    { retry_after_ms: 1000 },
  );
  socket.write(rawAnswer(503, reason, uuidv7()));
  socket.destroySoon();
}

/** Writes an answer where Node has no response object: to bytes that are not HTTP, and to an upgrade. */
function rawAnswer(status: number, error: Refusal, id: string): string {
  const body = JSON.stringify({ error });
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    "connection: close",
    "content-type: application/json; charset=utf-8",
    `x-request-id: ${id}`,
  ];
  return [...head, `content-length: ${Buffer.byteLength(body)}`, "", body].join("\r\n");
}
