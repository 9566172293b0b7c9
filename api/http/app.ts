import express, { type Express, type NextFunction, type Request, type Response } from "express";
import type { Broker } from "../../broker/broker.ts";
import { quoted, refusal } from "../../broker/model/refusal.ts";
import { sendRefusal } from "./answer.ts";
import { sendBug } from "./bug.ts";
import type { Caller } from "./caller.ts";
import type { Log } from "./context.ts";
import { ROUTES } from "./routes.ts";

/** Every route that is not on the path of a command. */
export function expressApp(broker: Broker, caller: () => Caller, log: Log): Express {
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  for (const { method, path, handle, for: whose } of ROUTES) {
    app[method](path, async (request, response, next) => {
      if (whose === "operator" && caller().kind !== "operator") return next();
      await handle({ broker, caller: caller(), log }, request, response);
    });
  }
  app.use((request: Request, response: Response) => sendUnknown(caller(), request, response));
  app.use((error: unknown, request: Request, response: Response, _next: NextFunction) => {
    if (!isCallersFault(error)) return sendBug(response, log, error);
    sendRefusal(
      response,
      refusal(
        "invalid_request",
        `Cannot read ${quoted(request.url)}: ${error.message}`,
        "Mend the path or the query",
      ),
    );
  });
  return app;
}

function sendUnknown({ kind }: Caller, request: Request, response: Response): void {
  const here = ROUTES.filter((route) => route.for === "everybody" || kind === "operator");
  const known = here.map((route) => `${route.method.toUpperCase()} ${route.path}`);
  const all = ["POST /v1/execute", "POST /v1/check", ...known].join(", ");
  sendRefusal(
    response,
    refusal(
      "not_found",
      `There is no ${quoted(`${request.method} ${request.path}`)} here`,
      `This version answers ${all}`,
    ),
  );
}

/** Express marks what the caller did wrong (a path that is no valid escape) with a status below 500. */
function isCallersFault(error: unknown): error is Error {
  return (
    error instanceof Error && "status" in error && typeof error.status === "number" && error.status < 500
  );
}
