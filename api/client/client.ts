import { request } from "node:http";

export type Answer = { readonly status: number; readonly document: unknown };

/** Error: no broker answers on the socket. */
export class NoBroker extends Error {
  override readonly name = "NoBroker";
}

/**
 * Error: another sandbox's seccomp filter refuses the connection with EPERM; the kernel's own refusal would be EACCES. Codex installs
 * such a filter for commands without network access.
 */
export class Sandboxed extends Error {
  override readonly name = "Sandboxed";

  constructor(socketPath: string, cause: Error) {
    super(
      `A sandbox around this process refuses the connection to '${socketPath}' (EPERM). In Codex, 'network_access = true' below '[sandbox_workspace_write]' in ~/.codex/config.toml allows it; Substrate isolates the commands itself`,
      { cause },
    );
  }
}

/**
 * Calls the broker over a Unix socket. Throws {@link NoBroker} without a listener, {@link Sandboxed} on EPERM, else the
 * connection's error.
 */
export function call(
  socketPath: string,
  method: string,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
  /** Request id, a UUID; by default made by the broker. */
  requestId?: string,
): Promise<Answer> {
  const payload = body === undefined ? undefined : Buffer.from(JSON.stringify(body), "utf8");
  return new Promise((resolve, reject) => {
    const headers = {
      ...(payload === undefined
        ? {}
        : { "content-type": "application/json", "content-length": payload.length }),
      ...(requestId === undefined ? {} : { "x-request-id": requestId }),
    };
    const outgoing = request(
      { socketPath, method, path, headers, ...(signal === undefined ? {} : { signal }) },
      (response) => {
        const parts: Buffer[] = [];
        response.on("data", (chunk: Buffer) => parts.push(chunk));
        response.on("error", reject);
        response.on("end", () => {
          try {
            resolve({ status: response.statusCode ?? 0, document: parse(Buffer.concat(parts)) });
          } catch (error) {
            reject(error instanceof Error ? error : new Error(String(error)));
          }
        });
      },
    );
    outgoing.on("error", (error) => reject(connectionError(socketPath, error)));
    outgoing.end(payload);
  });
}

/** The error of a failed connection: {@link NoBroker}, {@link Sandboxed}, or the given one. */
export function connectionError(socketPath: string, error: NodeJS.ErrnoException): Error {
  if (error.code === "EPERM") return new Sandboxed(socketPath, error);
  if (error.code !== "ENOENT" && error.code !== "ECONNREFUSED") return error;
  return new NoBroker(`No broker answers on '${socketPath}'. Run 'substrate broker start'`, { cause: error });
}

function parse(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch {
    throw new Error(`The broker's answer is not JSON: ${bytes.subarray(0, 200).toString("utf8")}`);
  }
}
