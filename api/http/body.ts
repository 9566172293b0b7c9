import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import { type Refusal, refusal } from "../../broker/model/refusal.ts";
import { noRoom } from "./bounds.ts";
import type { Context } from "./context.ts";

/** Longest request body, in bytes. */
export const MAX_BODY = 10 * 1024 * 1024;

/** Reads the declared length; undefined unless above {@link MAX_BODY}. */
export function excessOf({ headers }: IncomingMessage): number | undefined {
  const declared = Number(headers["content-length"] ?? 0);
  return declared > MAX_BODY ? declared : undefined;
}

/** Longest wait, in milliseconds, for the rest of a body that is declared too long. */
const DRAIN_MS = 1000;

/**
 * Reads the body of a request as JSON, under any content type. A body that is too long, or without room, is read and dropped before the
 * refusal, so the client receives the refusal instead of a broken connection; if declared too long, for at most {@link DRAIN_MS}.
 * Rejects only with {@link ClientLeft}.
 */
export function readJson(
  request: IncomingMessage,
  { bodies }: Pick<Context, "bodies">,
): Promise<{ readonly document: unknown } | Refusal> {
  const excess = excessOf(request);
  if (excess !== undefined) {
    // Closing the connection under a client that still writes would discard the answer (RFC 9112, 9.6).
    return new Promise((resolve) => {
      const answer = (): void => resolve(tooLarge(excess));
      const late = setTimeout(answer, DRAIN_MS);
      request.once("close", () => clearTimeout(late)).once("end", answer);
      request.resume().on("error", answer);
    });
  }
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let size = 0;
    let refused: Refusal | undefined;
    request.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > MAX_BODY) refused = tooLarge(size);
      else if (!bodies.keep(request, size)) refused ??= noRoom();
      if (refused === undefined) return void parts.push(chunk);
      parts.length = 0;
      bodies.release(request);
    });
    request.on("end", () => resolve(refused ?? parseJson(joined(parts))));
    request.on("error", (cause) =>
      reject(new ClientLeft("The client disconnected before it had sent its request", { cause })),
    );
  });
}

/** Error: the client closed the connection before it had its answer. Not a fault of the broker. */
export class ClientLeft extends Error {
  override readonly name = "ClientLeft";
}

function joined(parts: readonly Buffer[]): Buffer {
  const [only, ...more] = parts;
  return only !== undefined && more.length === 0 ? only : Buffer.concat(parts);
}

/** Reads JSON in UTF-8. */
export function parseJson(bytes: Buffer): { readonly document: unknown } | Refusal {
  const hint = 'Send one JSON object in UTF-8, for example {"agent_id": "me", "cmd": "git status"}';
  if (!isUtf8(bytes)) return refusal("invalid_request", "The body is not valid UTF-8", hint);
  const wrong = wrongShape(bytes);
  if (wrong !== undefined) return refusal("invalid_request", wrong, hint);
  const text = bytes.toString("utf8");
  try {
    return { document: JSON.parse(text) };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return refusal(
      "invalid_request",
      text.trim() === "" ? "The body is empty" : `The body is not JSON: ${why}`,
      hint,
    );
  }
}

/** Bounds on a body's shape, far beyond what any schema accepts. A shorter body costs too little to be looked at first. */
const MAX_DEPTH = 256;
const MAX_VALUES = 262_144;
const LOOKED_AT = 64 * 1024;

const [QUOTE, COMMA, BACKSLASH, OPEN, CLOSE] = [0x22, 0x2c, 0x5c, 0x5b, 0x5d];
/** `{` and `}` are `[` and `]` with this bit. */
const BRACE = 0x20;

/**
 * Counts levels and values before the JSON is parsed: millions of brackets or commas would keep all other callers waiting for seconds
 * and take hundreds of times the body's bytes, where a body of text is parsed in milliseconds. Malformed JSON is the parser's.
 */
function wrongShape(bytes: Buffer): string | undefined {
  if (bytes.length < LOOKED_AT) return undefined;
  let [depth, values, isText] = [0, 0, false];
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte === QUOTE) isText = !isText;
    else if (isText) at += byte === BACKSLASH ? 1 : 0;
    else if (byte === COMMA) values += 1;
    else if ((byte & ~BRACE) === OPEN) depth += 1;
    else if ((byte & ~BRACE) === CLOSE) depth -= 1;
    if (depth > MAX_DEPTH) return `The body is nested deeper than ${MAX_DEPTH} levels`;
    if (values > MAX_VALUES) return `The body has more than ${MAX_VALUES} values`;
  }
  return undefined;
}

export function tooLarge(size: number): Refusal {
  return refusal(
    "too_large",
    `The body has ${size} bytes; at most ${MAX_BODY} are accepted`,
    "Write large data to a file in the project and name the file",
  );
}
