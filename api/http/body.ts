import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import { type Refusal, refusal } from "../../broker/model/refusal.ts";

/** Longest request body, in bytes (CONTRACT §3). */
export const MAX_BODY = 10 * 1024 * 1024;

/** The length that a request declares, where it is more than is taken. */
export function excessOf({ headers }: IncomingMessage): number | undefined {
  const declared = Number(headers["content-length"] ?? 0);
  return declared > MAX_BODY ? declared : undefined;
}

/**
 * The JSON document of a request's body, whatever its content type says. A body that says that it is too long is answered
 * before it comes; one that turns out to be is read to its end and forgotten, so that the client gets to see the answer instead
 * of a broken connection. Rejects only when the client goes away, with {@link ClientLeft}.
 */
export function readJson(request: IncomingMessage): Promise<{ readonly document: unknown } | Refusal> {
  const excess = excessOf(request);
  if (excess !== undefined) {
    // What comes all the same is read and thrown away: to close now would take the answer from a client that still writes.
    request.resume().on("error", () => {});
    return Promise.resolve(tooLarge(excess));
  }
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let size = 0;
    request.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > MAX_BODY) parts.length = 0;
      else parts.push(chunk);
    });
    request.on("end", () => resolve(size > MAX_BODY ? tooLarge(size) : parseJson(joined(parts))));
    request.on("error", (cause) => reject(new ClientLeft(cause)));
  });
}

/** The connection ended in the middle of a request: nobody is left to be answered, and nothing is wrong here. */
export class ClientLeft extends Error {
  override readonly name = "ClientLeft";

  constructor(cause: Error) {
    super("The client left before it had sent its request", { cause });
  }
}

function joined(parts: readonly Buffer[]): Buffer {
  const [only, ...more] = parts;
  return only !== undefined && more.length === 0 ? only : Buffer.concat(parts);
}

function parseJson(bytes: Buffer): { readonly document: unknown } | Refusal {
  const hint = 'Send one JSON object in UTF-8, for example {"agent_id": "me", "cmd": "git status"}';
  if (!isUtf8(bytes)) return refusal("invalid_request", "The body is not valid UTF-8", hint);
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

export function tooLarge(size: number): Refusal {
  return refusal(
    "too_large",
    `The body has ${size} bytes and at most ${MAX_BODY} are taken`,
    "Write large data to a file in the project and name the file",
  );
}
