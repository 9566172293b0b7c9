import express, { type Express, type NextFunction, type Request, type Response } from "express";
import { quoted, refusal } from "../../broker/model/refusal.ts";
import { sendRefusal } from "./answer.ts";
import { sendBug } from "./bug.ts";
import type { Caller } from "./caller.ts";
import type { Context } from "./context.ts";
import { ROUTES } from "./routes.ts";

/** Express application with all routes except the `direct` routes. */
export function expressApp(context: () => Context): Express {
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  for (const route of ROUTES) {
    if (route.direct) continue;
    app[route.method](route.path, async (request, response, next) => {
      const here = context();
      if (route.for === "operator" && here.caller.kind !== "operator") return next();
      await route.answer(here, request, response);
    });
  }
  app.use((request: Request, response: Response) => sendUnknown(context().caller, request, response));
  app.use((error: unknown, request: Request, response: Response, _next: NextFunction) => {
    if (!isCallersFault(error)) return sendBug(response, context().log, error);
    sendRefusal(
      response,
      refusal(
        "invalid_request",
        `Cannot read ${quoted(request.url)}: ${error.message}`,
        "Correct the path or the query",
      ),
    );
  });
  return app;
}

function sendUnknown({ kind }: Caller, request: Request, response: Response): void {
  const here = ROUTES.filter((route) => route.for === "everybody" || kind === "operator");
  const known = here.map((route) => `${route.method.toUpperCase()} ${route.path}`).join(", ");
  sendRefusal(
    response,
    refusal(
      "not_found",
      `Unknown call ${quoted(`${request.method} ${request.path}`)}`,
      `This socket answers ${known}`,
    ),
  );
}

/** Whether the caller caused the error, such as an invalid escape in the path: Express sets a status below 500. */
function isCallersFault(error: unknown): error is Error {
  return (
    error instanceof Error && "status" in error && typeof error.status === "number" && error.status < 500
  );
}
