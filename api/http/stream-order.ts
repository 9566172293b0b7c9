/** The first message of a stream: an execute request with the fields of {@link StreamOptions}. */
import { SHELL_ARGV } from "../../broker/live/shell-script.ts";
import type { LiveOptions } from "../../broker/live/live-command.ts";
import { isRefusal, type Refusal, refusal } from "../../broker/model/refusal.ts";
import type { ExecuteRequest, StreamOptions } from "../../schemas/generated/types.ts";
import { validateExecuteRequest } from "../../schemas/generated/validators/execute-request.js";
import { validateStreamOptions } from "../../schemas/generated/validators/stream-options.js";
import type { Caller } from "./caller.ts";
import { agentDocument, checked, isObject } from "./valid-request.ts";

export type StreamOrder = {
  readonly request: ExecuteRequest;
  readonly live: LiveOptions;
  readonly hasOwnHome: boolean;
  /** Whether the client is told how much input was taken. */
  readonly tellsTaken: boolean;
  /** Whether the client is told of questions that wait for a person. */
  readonly tellsQuestions: boolean;
  /** All that a terminal's command is to read, as given by `stdin_b64`. */
  readonly typed: Buffer | undefined;
};

const OPTIONS: readonly (keyof StreamOptions)[] = [
  "pty",
  "cols",
  "rows",
  "term",
  "on_disconnect",
  "home",
  "stdin",
  "job_control",
  "session_shell",
  "questions",
];

/** @param canType whether the connection carries input. */
export function streamOrder(document: unknown, caller: Caller, canType: boolean): StreamOrder | Refusal {
  const isOption = ([name]: [string, unknown]): boolean => OPTIONS.some((each) => each === name);
  const fields = isObject(document) ? Object.entries(document) : [];
  const options = checked<StreamOptions>(Object.fromEntries(fields.filter(isOption)), validateStreamOptions);
  if (isRefusal(options)) return options;
  const given = isObject(document)
    ? Object.fromEntries(fields.filter((field) => !isOption(field)))
    : document;
  const rest = options.valid.session_shell === true && isObject(given) ? shellRequest(given) : given;
  if (isObject(rest) && isRefusal(rest)) return rest;
  const request = agentDocument<ExecuteRequest>(rest, caller, validateExecuteRequest);
  if (isRefusal(request)) return request;
  if (options.valid.session_shell === true && caller.kind !== "operator") return personsOnly();
  return misfit(request.valid, options.valid, canType) ?? orderOf(request.valid, options.valid, canType);
}

/** Whoever types into the shell past its lines has a bash whose commands only the exec gate judges: a person may, an agent not. */
function personsOnly(): Refusal {
  return refusal(
    "invalid_request",
    "session_shell: only the operator's socket has it",
    "Use sock/control.sock as a person, or send each command with POST /v1/execute",
    { path: "session_shell" },
  );
}

/** Adds the shell's own words to a request that has none. */
function shellRequest(request: Readonly<Record<string, unknown>>): Record<string, unknown> | Refusal {
  const other = ["cmd", "argv", "shell", "scope_token", "stdin_b64"].find(
    (name) => request[name] !== undefined,
  );
  return other === undefined
    ? { ...request, argv: SHELL_ARGV }
    : useless(other, "a session_shell has its own", "Leave it out");
}

function orderOf(request: ExecuteRequest, options: StreamOptions, canType: boolean): StreamOrder {
  const { pty = false, cols = 80, rows = 24, term = "xterm-256color", stdin } = options;
  const given = request.stdin_b64;
  return {
    request: pty ? { ...request, env: { TERM: term, ...request.env } } : request,
    live: {
      terminal: pty ? { columns: cols, rows } : undefined,
      hasInput: canType && stdin !== false && given === undefined,
      isShell: options.session_shell === true,
      isJob: options.job_control === true,
      onDisconnect: options.on_disconnect ?? "kill",
    },
    hasOwnHome: options.home === "own",
    tellsTaken: stdin === true,
    tellsQuestions: options.questions === true,
    typed: pty && given !== undefined ? Buffer.from(given, "base64") : undefined,
  };
}

/** Refuses fields that would be without effect. */
function misfit(request: ExecuteRequest, options: StreamOptions, canType: boolean): Refusal | undefined {
  if (request.idempotency_key !== undefined) {
    return useless("idempotency_key", "a stream cannot be repeated", "Use POST /v1/execute, or leave it out");
  }
  if (options.stdin === true && !canType) {
    return useless(
      "stdin",
      "server-sent events carry no input",
      "Use GET /v1/stream as a WebSocket, or stdin_b64",
    );
  }
  if (options.stdin === true && request.stdin_b64 !== undefined) {
    return useless("stdin", "'stdin_b64' is the whole input", "Send one of the two");
  }
  if (options.session_shell === true && (options.pty !== true || !canType)) {
    return useless("session_shell", "it needs a terminal", "Use GET /v1/stream with 'pty': true");
  }
  if (options.job_control === true && (options.pty !== true || !canType)) {
    return useless("job_control", "it needs a terminal", "Use GET /v1/stream with 'pty': true");
  }
  if (options.job_control === true && options.on_disconnect === "detach") {
    return useless("job_control", "nobody continues a stopped command that was detached", "Leave it out");
  }
  if (options.session_shell === true && options.on_disconnect === "detach") {
    return useless("on_disconnect", "a shell belongs to its terminal", "Leave it out");
  }
  if (options.pty === true && request.outputs !== undefined) {
    return useless("outputs", "a terminal is one output", "Leave it out");
  }
  const size = (["cols", "rows", "term"] as const).find((name) => options[name] !== undefined);
  return size === undefined || options.pty === true
    ? undefined
    : useless(size, "only a terminal has it", "Send 'pty': true, or leave it out");
}

function useless(path: string, why: string, hint: string): Refusal {
  return refusal("invalid_request", `${path}: cannot be used here: ${why}`, hint, { path });
}
