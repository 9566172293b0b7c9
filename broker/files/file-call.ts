/** From a request of `POST /v1/files` to the order that a world carries out. Pure. */
import type { CheckFilesRequest, FilesRequest } from "../../schemas/generated/types.ts";
import { FILE_LIMITS, type FileChange, type FileOrder } from "../../world/backend.ts";
import { isRefusal, type Refusal, refusal } from "../model/refusal.ts";
import { posixExpression, Unsayable } from "./expression.ts";
import { patchChanges } from "./patch-changes.ts";

export type FileCall = {
  readonly order: FileOrder;
  /** The operation in words, for the span. */
  readonly words: readonly [string, ...string[]];
  readonly files: CheckFilesRequest["files"];
};

/** As much as a model reads at once. */
const LINES = 2000;
const BYTES = 256 * 1024;
const RESULTS = 200;

type Field = Exclude<keyof FilesRequest, "agent_id" | "op">;

/** Fields of each operation beside those of every operation; the first ones are required. */
const FIELDS: Readonly<
  Record<FilesRequest["op"], { readonly required: readonly Field[]; readonly optional: readonly Field[] }>
> = {
  read: { required: ["path"], optional: ["line", "lines", "encoding", "max_bytes"] },
  write: { required: ["path"], optional: ["text", "data_b64"] },
  edit: { required: ["path", "old_text", "new_text"], optional: ["replace_all"] },
  patch: { required: ["patch"], optional: [] },
  glob: { required: ["pattern"], optional: ["path", "all", "limit"] },
  grep: {
    required: ["pattern"],
    optional: ["path", "glob", "ignore_case", "fixed", "names_only", "all", "limit"],
  },
};

const EVERYWHERE: readonly Field[] = [
  "cwd",
  "profile",
  "session_id",
  "session_key",
  "parent_span",
  "scope_token",
  "umask",
  "approval_wait_ms",
];

/** Returns the call of a request, or what is wrong with it. */
export function fileCall(request: FilesRequest): FileCall | Refusal {
  const wrong = wrongField(request);
  if (wrong !== undefined) return wrong;
  const { op, path = ".", pattern = "" } = request;
  switch (op) {
    case "read":
      return { order: readOrder(request), words: [op, path], files: [{ path, access: "read" }] };
    case "write":
      return changeCall(op, [{ kind: "write", path, content: contentOf(request) }]);
    case "edit":
      return changeCall(op, [{ kind: "edit", path, edits: [editOf(request)] }]);
    case "patch": {
      const changes = patchChanges(request.patch ?? "");
      return "code" in changes ? changes : changeCall(op, changes);
    }
    case "glob":
    case "grep": {
      const globs = globsOf(op === "glob" ? pattern : request.glob, op === "glob" ? "pattern" : "glob");
      if (isRefusal(globs)) return globs;
      const expression = op === "grep" ? expressionOf(pattern, request.fixed === true) : undefined;
      if (typeof expression === "object") return expression;
      const order = {
        op,
        path,
        globs,
        ...(expression === undefined ? {} : { pattern: expression }),
        limit: request.limit ?? RESULTS,
        all: request.all === true,
        ignoreCase: request.ignore_case === true,
        fixed: request.fixed === true,
        namesOnly: request.names_only === true,
      };
      return { order, words: [op, pattern, path], files: [{ path, access: "read" }] };
    }
  }
}

function wrongField(request: FilesRequest): Refusal | undefined {
  const { op } = request;
  const { required, optional } = FIELDS[op];
  const known: readonly string[] = ["agent_id", "op", ...EVERYWHERE, ...required, ...optional];
  const given = Object.keys(request);
  const missing = required.find((name) => request[name] === undefined);
  const other = given.find((name) => !known.includes(name));
  if (missing !== undefined) return wrong(missing, `required for '${op}'`);
  if (other !== undefined) return wrong(other, `not a field of '${op}'`);
  const contents = [request.text, request.data_b64].filter((one) => one !== undefined);
  if (op === "write" && contents.length !== 1)
    return wrong("text", "exactly one of text and data_b64 is required");
  return undefined;
}

function wrong(path: string, why: string): Refusal {
  return refusal("invalid_request", `${path}: ${why}`, "Compare the request with api/REFERENCE.md", { path });
}

function readOrder({ path = "", line, lines, encoding, max_bytes: bytes }: FilesRequest): FileOrder {
  const op = encoding === "base64" ? "raw" : "read";
  return { op, path, first: line ?? 1, limit: lines ?? LINES, bytes: bytes ?? BYTES };
}

function contentOf({ text, data_b64: data = "" }: FilesRequest): Uint8Array {
  return text === undefined ? Buffer.from(data, "base64") : Buffer.from(text);
}

function editOf({ old_text: old = "", new_text: text = "", replace_all: all }: FilesRequest) {
  return { old, new: text, all: all === true };
}

function changeCall(op: FilesRequest["op"], changes: readonly FileChange[]): FileCall {
  const paths = changes.map(({ path }) => path);
  return {
    order: { op: "change", changes },
    words: [op, ...paths],
    files: paths.map((path) => ({ path, access: "write" })),
  };
}

/** Spells out `{a,b}`. */
function globsOf(glob: string | undefined, field: Field): readonly string[] | Refusal {
  if (glob !== undefined && /^\/|(?:^|\/)\.\.(?:\/|$)/.test(glob))
    return wrong(field, "begins below path, and leads to no other folder: set path to the folder to search");
  const done: string[] = [];
  const open = glob === undefined ? [] : [glob.replace(/^\.\//, "")];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const group = /\{([^{}]*)\}/.exec(next);
    if (group === null) done.push(next);
    else
      for (const word of (group[1] ?? "").split(","))
        open.push(`${next.slice(0, group.index)}${word}${next.slice(group.index + group[0].length)}`);
    if (done.length + open.length > FILE_LIMITS.globs)
      return wrong(field, `spelled out, its {} are more than ${FILE_LIMITS.globs} patterns`);
  }
  return done;
}

function expressionOf(pattern: string, isFixed: boolean): string | Refusal {
  try {
    return isFixed ? pattern : posixExpression(pattern);
  } catch (error) {
    if (error instanceof Unsayable) return wrong("pattern", `${error.message}; with fixed it is plain text`);
    throw error;
  }
}
