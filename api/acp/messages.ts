/** Messages of JSON-RPC, as the Agent Client Protocol uses them. */
import { type Answer, call, NoBroker } from "../client/client.ts";
import type { ErrorReply } from "../../schemas/generated/types.ts";

export type Fields = Readonly<Record<string, unknown>>;

export type Message = {
  readonly id?: unknown;
  readonly method?: unknown;
  readonly params?: unknown;
  readonly result?: unknown;
  readonly error?: unknown;
};

/** Reads a line; undefined for text that is no JSON object. */
export function messageOf(line: Buffer): Message | undefined {
  try {
    return fieldsOf(JSON.parse(line.toString("utf8")));
  } catch {
    return undefined;
  }
}

export function fieldsOf(value: unknown): Fields | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
}

export function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Of a way to log in, what an editor shows and sends back. */
const LOGIN_FIELDS: ReadonlySet<string> = new Set(["id", "name", "description", "type", "vars", "link"]);

/**
 * An agent's answer without log-ins that an editor would carry out: it shows their name, and runs their command on the host
 * (`type: "terminal"`, `_meta["terminal-auth"]`). `dropped` if there were any.
 */
export function withoutLoginCommands(message: Message): {
  readonly message: Message;
  readonly dropped: boolean;
} {
  const { result, error } = message;
  const data = fieldsOf(fieldsOf(error)?.["data"]);
  let dropped = false;
  const harmless = (methods: unknown): readonly Fields[] =>
    listOf(methods).flatMap((one) => {
      const method = fieldsOf(one) ?? {};
      const kept = Object.fromEntries(Object.entries(method).filter(([name]) => LOGIN_FIELDS.has(name)));
      const runs = ![undefined, "agent", "env_var"].includes(method["type"] as string | undefined);
      dropped ||= runs || method["_meta"] !== undefined;
      return runs ? [] : [kept];
    });
  const cleaned = (fields: Fields | undefined): Fields | undefined =>
    fields?.["authMethods"] === undefined
      ? fields
      : { ...fields, authMethods: harmless(fields["authMethods"]) };
  const answer = {
    ...message,
    ...(fieldsOf(result) === undefined ? {} : { result: cleaned(fieldsOf(result)) }),
    ...(data === undefined ? {} : { error: { ...fieldsOf(error), data: cleaned(data) } }),
  };
  return { message: answer, dropped };
}

/** An error that the agent is answered with. */
export class Refused extends Error {
  readonly code: number;
  readonly data: unknown;

  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

export const INVALID_PARAMS = -32_602;
export const CANCELLED = -32_800;
/** The protocol's "resource not found". */
const NOT_FOUND = -32_002;
const REFUSED = -32_010;
const BROKEN = -32_603;

/** Turns the broker's refusal into one that a model can act on. */
export function refusedBy({ document }: Answer): Refused {
  const { code, message, hint } = (document as ErrorReply).error;
  return new Refused(code === "not_found" ? NOT_FOUND : REFUSED, `${message}\n${hint}`, { code });
}

export function refusedFor(error: unknown): Refused {
  if (error instanceof Refused) return error;
  return new Refused(BROKEN, error instanceof Error ? error.message : String(error));
}

/** Makes a call that must succeed. Throws {@link Refused} for a refusal, and without a broker. */
export async function succeed<T>(
  socket: string,
  path: string,
  body: object,
  signal?: AbortSignal,
): Promise<T> {
  const answer = await call(socket, "POST", path, body, signal).catch((error: unknown) => {
    throw error instanceof NoBroker ? new Refused(BROKEN, error.message) : error;
  });
  if (answer.status !== 200) throw refusedBy(answer);
  return answer.document as T;
}
