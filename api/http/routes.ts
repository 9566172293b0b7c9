import type { Request, Response } from "express";
import type { Context } from "./context.ts";
import { handleHealth } from "./health.ts";
import { handleSpans } from "./spans.ts";
import { handleTrace } from "./trace.ts";

export type Route = {
  readonly method: "get" | "post" | "delete";
  readonly path: string;
  readonly handle: (context: Context, request: Request, response: Response) => Promise<void> | void;
};

/** What Express answers. `execute` and `check` are in `listener.ts`. */
export const ROUTES: readonly Route[] = [
  { method: "get", path: "/v1/trace/:span_id", handle: handleTrace },
  { method: "get", path: "/v1/spans", handle: handleSpans },
  { method: "get", path: "/v1/health", handle: handleHealth },
];
