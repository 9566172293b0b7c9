import { BANNER } from "./documents.mjs";

/** @typedef {import("./documents.mjs").SchemaFile} SchemaFile */

/**
 * A call: method, path, schemas of the body and of the reply, and query parameters. `null`: no JSON. Several schemas: one of them.
 * @typedef {readonly [
 *   call: string,
 *   body: readonly string[] | null,
 *   reply: readonly string[] | null,
 *   query?: readonly string[],
 * ]} Row
 */

/** @type {readonly Row[]} */
const CALLS = [
  ["POST /v1/execute", ["execute-request"], ["execute-reply", "execute-text-reply"]],
  ["GET /v1/stream", null, null],
  ["GET /v1/stream/:span_id", null, null],
  ["POST /v1/stream", ["execute-request"], null],
  ["POST /v1/check", ["execute-request", "check-files-request"], ["check-reply"]],
  ["POST /v1/files", ["files-request"], ["files-reply"]],
  ["POST /v1/report", ["report-request"], ["report-reply"]],
  ["POST /v1/events", ["event-request"], ["event-reply"]],
  ["GET /v1/sessions", null, ["sessions-reply"], ["agent_id", "limit", "cursor"]],
  ["GET /v1/trace/:span_id", null, ["trace-reply"]],
  ["GET /v1/trace/:span_id/tree", null, ["trace-tree-reply"], ["limit", "cursor"]],
  [
    "GET /v1/spans",
    null,
    ["spans-reply"],
    ["session_id", "since", "limit", "cursor", "agent_id", "programs"],
  ],
  ["GET /v1/health", null, ["health-reply"]],
  ["GET /metrics", null, null],
  ["GET /v1/openapi.json", null, null],
  ["POST /v1/request_scopes", ["request-scopes-request"], ["request-scopes-reply"]],
  ["GET /v1/held", null, ["held-reply"], ["cwd"]],
  ["GET /v1/diff/:span_id", null, ["diff-reply"], ["path"]],
  ["POST /v1/apply/:span_id", ["changes-request"], ["changes-reply"]],
  ["POST /v1/discard/:span_id", ["changes-request"], ["changes-reply"]],
  ["POST /v1/undo/:span_id", ["changes-request"], ["changes-reply"]],
  ["POST /v1/replay/:span_id", ["replay-request"], ["replay-reply"]],
  ["GET /v1/approvals", null, ["approvals-reply"]],
  ["POST /v1/approvals/:approval_id", ["approval-decision-request"], ["approval-decision-reply"]],
  ["POST /v1/approvals/:approval_id/preview", ["empty-request"], ["approval-preview-reply"]],
  ["GET /v1/policy/:name", null, ["policy-reply"]],
  ["POST /v1/policy/reload", ["empty-request"], ["policy-reload-reply"]],
  ["POST /v1/world/warm", ["world-warm-request"], ["world-warm-reply"]],
  ["POST /v1/world/restart", ["world-restart-request"], ["world-restart-reply"]],
  ["POST /v1/world/publish", ["world-publish-request"], ["world-publish-reply"]],
  ["GET /v1/budgets", null, ["budgets-reply"]],
  ["GET /v1/budgets/:agent_id", null, ["budget-reply"]],
  ["DELETE /v1/budgets/:agent_id", null, ["budget-reply"]],
];

/** Replies that are no JSON document of a schema. @type {{ readonly [call: string]: object }} */
const OTHER = {
  "GET /v1/stream": { 101: { description: "A WebSocket" } },
  "GET /v1/stream/:span_id": { 101: { description: "A WebSocket" } },
  "POST /v1/stream": reply("Events started, stdout, stderr, exit, error", "text/event-stream", {}),
  "GET /metrics": reply("Prometheus text", "text/plain", {}),
  "GET /v1/openapi.json": reply("This document", "application/json", {}),
};

/**
 * Writes `openapi.js`: the calls in OpenAPI 3.1.
 * @param {SchemaFile[]} schemas
 */
export function openapiModule(schemas) {
  /** @type {{ [path: string]: { [method: string]: object } }} */
  const paths = {};
  for (const row of CALLS) {
    const [method = "", path = ""] = row[0].split(" ");
    const braced = path.replace(/:(\w+)/g, "{$1}");
    paths[braced] = { ...paths[braced], [method.toLowerCase()]: operation(row, path) };
  }
  const document = {
    openapi: "3.1.0",
    info: { title: "Substrate", version: "1", description: "JSON over HTTP/1.1 on Unix sockets." },
    jsonSchemaDialect: "http://json-schema.org/draft-07/schema#",
    paths,
    components: { schemas: Object.fromEntries(schemas.filter(isHttp).map(component)) },
  };
  return `// ${BANNER}\n// @ts-nocheck\nexport const openapi = ${JSON.stringify(document)};\n`;
}

/**
 * @param {Row} row
 * @param {string} path
 */
function operation([call, body, documents, query = []], path) {
  const named = [...path.matchAll(/:(\w+)/g)].map(([, name]) => parameter(name ?? "", "path"));
  const asked = query.map((name) => parameter(name, "query"));
  const optional = body?.every((file) => /^(empty|changes|replay)-request$/.test(file));
  return {
    summary: call,
    parameters: [...named, ...asked],
    ...(body === null ? {} : { requestBody: { required: optional !== true, content: json(body) } }),
    responses: {
      ...(documents === null ? OTHER[call] : { 200: { description: "Done", content: json(documents) } }),
      default: { description: "A refusal or an error", content: json(["error-reply"]) },
    },
  };
}

/** @param {string} name @param {"path" | "query"} place */
function parameter(name, place) {
  return { name, in: place, required: place === "path", schema: { type: "string" } };
}

/** @param {string} description @param {string} type @param {object} schema */
function reply(description, type, schema) {
  return { 200: { description, content: { [type]: { schema } } } };
}

/** @param {readonly string[]} files */
function json(files) {
  const [only, ...more] = files.map((file) => ({ $ref: `#/components/schemas/${file}` }));
  return { "application/json": { schema: more.length === 0 ? only : { anyOf: [only, ...more] } } };
}

/** Whether a schema is of a body, or has parts that a body uses. @param {SchemaFile} file */
function isHttp({ file }) {
  return /-(request|reply)\.schema|^(shared|span|policy)\.schema/.test(file);
}

/** @param {SchemaFile} file @returns {[name: string, schema: object]} */
function component({ file, schema }) {
  const { $schema: _draft, $id: _id, ...rest } = /** @type {any} */ (schema);
  return [nameOf(file), withRefs(rest, nameOf(file))];
}

/** @param {string} file */
function nameOf(file) {
  return file.replace(".schema.json", "");
}

/**
 * Rewrites references between files, and within a file, to places of the one document.
 * @param {any} schema
 * @param {string} own
 * @returns {any}
 */
function withRefs(schema, own) {
  if (Array.isArray(schema)) return schema.map((one) => withRefs(one, own));
  if (typeof schema !== "object" || schema === null) return schema;
  return Object.fromEntries(
    Object.entries(schema).map(([key, value]) => {
      if (key !== "$ref" || typeof value !== "string") return [key, withRefs(value, own)];
      const [file = "", place = ""] = value.split("#");
      return [key, `#/components/schemas/${file === "" ? own : nameOf(file)}${place}`];
    }),
  );
}
