import type { Request, Response } from "express";
import type { Context } from "./context.ts";
import { handleHealth } from "./health.ts";
import { handleSpans } from "./spans.ts";
import { handleTrace } from "./trace.ts";

export type Route = {
  readonly method: "get" | "post" | "delete";
  readonly path: string;
  readonly operatorOnly: boolean;
  readonly handle: (context: Context, request: Request, response: Response) => Promise<void> | void;
};

/** What Express answers. `execute` and `check` are in `listener.ts`. */
export const ROUTES: readonly Route[] = [
  { method: "get", path: "/v1/trace/:span_id", operatorOnly: false, handle: handleTrace },
  { method: "get", path: "/v1/spans", operatorOnly: false, handle: handleSpans },
  { method: "get", path: "/v1/health", operatorOnly: false, handle: handleHealth },
];
