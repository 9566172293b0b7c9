/**
 * HTTP listeners, one per socket. The `direct` calls of `ROUTES` bypass Express: every command makes such calls, and routing in
 * Express costs a third of a millisecond. Express answers all other calls.
 */
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from "node:http";
import { uuidv7 } from "uuidv7";
import type { Broker } from "../../broker/broker.ts";
import { sendRefusal } from "./answer.ts";
import { excessOf, tooLarge } from "./body.ts";
import type { Caller } from "./caller.ts";
import { quoted, type Refusal, refusal } from "../../broker/model/refusal.ts";
import { sendBug } from "./bug.ts";
import type { Context, Log } from "./context.ts";
import { ROUTES } from "./routes.ts";
import { UnreadAnswers } from "./unread-answers.ts";

const KEEP_ALIVE_MS = 120_000;

/** Creates a server for one kind of caller, not yet listening. */
export function createListener(broker: Broker, caller: () => Caller, log: Log): Server {
  const unread = new UnreadAnswers();
  const context = (): Context => ({ broker, caller: caller(), log, unread });
  const answer = directFirst(context, lazyExpress(context));
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, answer);
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

function directFirst(context: () => Context, rest: RequestListener): RequestListener {
  const direct = new Map(
    ROUTES.flatMap((route) => (route.direct ? [[route.path, route.answer] as const] : [])),
  );
  return (request, response) => {
    response.setHeader("x-request-id", requestIdOf(request));
    const answer = request.method === "POST" ? direct.get(request.url ?? "") : undefined;
    if (answer === undefined) return rest(request, response);
    const here = context();
    answer(here, request, response).catch((error: unknown) => sendBug(response, here.log, error));
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

/** Writes a raw answer to bytes that are not HTTP: Node has no response object for them. */
function answerToNoHttp(error: Error): string {
  const reason = refusal(
    "invalid_request",
    `Cannot read the request: ${error.message}`,
    "Send HTTP/1.1, with headers of at most 16 KiB",
  );
  const body = JSON.stringify({ error: reason });
  const head = [
    "HTTP/1.1 400 Bad Request",
    "connection: close",
    "content-type: application/json; charset=utf-8",
    `x-request-id: ${uuidv7()}`,
  ];
  return [...head, `content-length: ${Buffer.byteLength(body)}`, "", body].join("\r\n");
}
