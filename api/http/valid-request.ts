/** Readers of request bodies: parse, add the caller's identity, validate by schema. */
import { isRefusal, type Refusal, refusal } from "../../broker/model/refusal.ts";
import type { IncomingMessage } from "node:http";
import type { EmptyRequest } from "../../schemas/generated/types.ts";
import { validateEmptyRequest } from "../../schemas/generated/validators/empty-request.js";
import { describeErrors } from "../../schemas/validation-errors.ts";
import { readJson } from "./body.ts";
import type { Read } from "./call.ts";
import type { Caller } from "./caller.ts";

type Errors = Parameters<typeof describeErrors>[1];

/** A generated validator: a type guard with the last call's errors as a property. */
export type Validator<T> = ((document: unknown) => document is T) & { errors?: Errors | null };

/** Reads a body with a required `agent_id`. */
export function agentBody<Body>(validate: Validator<Body>): Read<Body> {
  return async (request, context) => {
    const sent = await readJson(request, context);
    if (isRefusal(sent)) return sent;
    return agentDocument(sent.document, context.caller, validate);
  };
}

/** Checks a document with a required `agent_id`. */
export function agentDocument<Body>(
  sent: unknown,
  caller: Caller,
  validate: Validator<Body>,
): { readonly valid: Body } | Refusal {
  const document = withIdentity(sent, caller);
  return identityProblem(document, caller) ?? worldProblem(document, caller) ?? checked(document, validate);
}

/** Reads a body without `agent_id`; a missing body counts as empty. */
export function body<Body>(validate: Validator<Body>): Read<Body> {
  return async (request, context) => {
    if (hasNoBody(request)) return checked({}, validate);
    const sent = await readJson(request, context);
    return isRefusal(sent) ? sent : checked(sent.document, validate);
  };
}

/** Reads a body without any fields. */
export const NO_FIELDS: Read<EmptyRequest> = body<EmptyRequest>(validateEmptyRequest);

/** Ignores the body. */
export const NO_BODY: Read<undefined> = () => Promise.resolve({ valid: undefined });

/** Whether a request has no body: no `transfer-encoding`, and `content-length` missing or 0 (RFC 9112, 6.3). */
function hasNoBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] === undefined && Number(headers["content-length"] ?? 0) === 0;
}

/** Checks a document by its schema. */
export function checked<T>(document: unknown, validate: Validator<T>): { readonly valid: T } | Refusal {
  if (validate(document)) return { valid: document };
  const errors = validate.errors ?? [];
  const meant = isObject(document) ? withoutNulls(document, validate) : document;
  return validate(meant) ? { valid: meant } : describe(meant, validate.errors ?? errors);
}

/**
 * Removes null fields, which count as absent (api/README.md), except where null is a valid value; also the fields of `budget`.
 * Keeps unknown fields, so validation refuses them.
 */
function withoutNulls<T>(sent: Record<string, unknown>, validate: Validator<T>): unknown {
  const { budget } = sent;
  const document = isObject(budget) ? { ...sent, budget: withoutNullLimits(budget) } : sent;
  const given = Object.entries(document);
  const bare = Object.fromEntries(given.filter(([, value]) => value !== null));
  // Invalid even without null fields: adding null fields cannot help.
  if (!validate(bare)) return bare;
  const kept: Record<string, null> = {};
  for (const [name] of given.filter(([, value]) => value === null)) {
    const withNull = { ...bare, [name]: null };
    if (validate(withNull)) kept[name] = null;
    else if (validate.errors?.some(({ keyword }) => keyword === "additionalProperties") === true)
      return withNull;
  }
  return { ...bare, ...kept };
}

function withoutNullLimits(budget: Record<string, unknown>): Record<string, unknown> {
  const limits = ["max_execs", "max_runtime_ms", "max_egress_bytes"];
  return Object.fromEntries(
    Object.entries(budget).filter(([name, value]) => value !== null || !limits.includes(name)),
  );
}

/** Adds a missing `agent_id` on an agent's own socket. */
function withIdentity(document: unknown, caller: Caller): unknown {
  if (caller.kind !== "agent" || !isObject(document) || (document["agent_id"] ?? undefined) !== undefined)
    return document;
  return { ...document, agent_id: caller.agent };
}

function identityProblem(document: unknown, caller: Caller): Refusal | undefined {
  if (!isObject(document)) return undefined;
  const claimed = document["agent_id"];
  if (claimed === undefined || claimed === null || claimed === "") {
    return refusal(
      "agent_id_required",
      "This call does not say which agent it is for: 'agent_id' is missing",
      "Send 'agent_id': a name of your choice such as \"claude\"",
      { path: "agent_id" },
    );
  }
  if (caller.kind === "agent" && claimed !== caller.agent) {
    return refusal(
      "invalid_request",
      `agent_id: this socket belongs to agent '${caller.agent}', received another name`,
      "Leave 'agent_id' out, or use sock/agent.sock",
      { path: "agent_id" },
    );
  }
  if (caller.kind === "label" && typeof claimed === "string" && caller.reserved.has(claimed)) {
    return refusal(
      "invalid_request",
      `agent_id: agent '${claimed}' has a socket of its own`,
      `Connect to sock/agents/${claimed}.sock, or choose another name`,
      { path: "agent_id" },
    );
  }
  return undefined;
}

/** A world is switched off by a person, never by an agent. */
function worldProblem(document: unknown, caller: Caller): Refusal | undefined {
  if (caller.kind === "operator" || !isObject(document) || (document["world"] ?? undefined) === undefined)
    return undefined;
  return refusal(
    "invalid_request",
    "world: only the operator's socket has it",
    "Leave 'world' out: the command runs in a world",
    { path: "world" },
  );
}

function describe(document: unknown, errors: Errors): Refusal {
  const problems = describeErrors(document, errors);
  const text = problems.slice(0, 5).map(({ message }) => message);
  const [first] = problems;
  return refusal(
    "invalid_request",
    text.join("; "),
    "Compare the request with schemas/, or with the table in api/README.md",
    first === undefined || first.path === "" ? {} : { path: first.path },
  );
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
