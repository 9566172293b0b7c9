/** Calls that agents and operators share: spans and held changes. */
import type {
  ChangesReply,
  DiffReply,
  HealthReply,
  HeldReply,
  Span,
  SpansReply,
  TraceReply,
  TraceTreeReply,
} from "../../schemas/generated/types.ts";
import { call } from "./client.ts";
import { failureOf, refusalOf } from "./errors.ts";

export type CallOptions = { readonly signal?: AbortSignal | undefined };

export type SpanFilter = {
  readonly session_id?: string;
  /** RFC 3339. */
  readonly since?: string;
  /** Spans of a page. */
  readonly limit?: number;
  /** True: only the programs that commands started. */
  readonly programs?: boolean;
};

export class Calls {
  /** Path of the broker's socket. */
  readonly socket: string;

  constructor(socket: string) {
    this.socket = socket;
  }

  /** What worlds on this host achieve, and the warm ones. */
  health(options?: CallOptions): Promise<HealthReply> {
    return this.ask("GET", "/v1/health", undefined, options);
  }

  /** A span and its children. */
  trace(span: string, options?: CallOptions): Promise<TraceReply> {
    return this.ask("GET", `/v1/trace/${encodeURIComponent(span)}`, undefined, options);
  }

  /** A span and all spans below it. */
  tree(span: string, options?: CallOptions): Promise<TraceTreeReply> {
    return this.ask("GET", `/v1/trace/${encodeURIComponent(span)}/tree`, undefined, options);
  }

  /** All spans, newest first, page by page. */
  async *spans(filter: SpanFilter = {}, options?: CallOptions): AsyncGenerator<Span, void, void> {
    let cursor: string | null = null;
    do {
      const query = new URLSearchParams();
      for (const [name, value] of Object.entries({ ...filter, cursor: cursor ?? undefined }))
        if (value !== undefined) query.set(name, String(value));
      const page: SpansReply = await this.ask("GET", `/v1/spans?${query.toString()}`, undefined, options);
      yield* page.spans;
      cursor = page.next_cursor;
    } while (cursor !== null);
  }

  /** Isolated commands whose changes wait to be applied. */
  held(options?: CallOptions): Promise<HeldReply> {
    return this.ask("GET", "/v1/held", undefined, options);
  }

  /** The held changes of a command. */
  diff(span: string, options?: CallOptions): Promise<DiffReply> {
    return this.ask("GET", `/v1/diff/${encodeURIComponent(span)}`, undefined, options);
  }

  /** Applies held changes: all, or those of the paths. An agent may where its policy says `changes.apply: agent`. */
  apply(span: string, paths?: readonly string[], options?: CallOptions): Promise<ChangesReply> {
    return this.#change("apply", span, paths, options);
  }

  discard(span: string, paths?: readonly string[], options?: CallOptions): Promise<ChangesReply> {
    return this.#change("discard", span, paths, options);
  }

  undo(span: string, paths?: readonly string[], options?: CallOptions): Promise<ChangesReply> {
    return this.#change("undo", span, paths, options);
  }

  /** Any other call of the API (api/README.md). Throws {@link SubstrateError} for every status but 200. */
  async ask<Reply>(
    method: "GET" | "POST" | "DELETE",
    path: string,
    body?: object,
    { signal }: CallOptions = {},
  ): Promise<Reply> {
    signal?.throwIfAborted();
    const answer = await call(this.socket, method, path, body, signal).catch((error: unknown) => {
      throw failureOf(error, signal);
    });
    if (answer.status !== 200) throw refusalOf(answer);
    return answer.document as Reply;
  }

  #change(
    action: "apply" | "discard" | "undo",
    span: string,
    paths: readonly string[] | undefined,
    options?: CallOptions,
  ): Promise<ChangesReply> {
    const body = paths === undefined ? {} : { paths };
    return this.ask("POST", `/v1/${action}/${encodeURIComponent(span)}`, body, options);
  }
}
