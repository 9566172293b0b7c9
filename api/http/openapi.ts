/** `GET /v1/openapi.json`: describes the calls of all sockets, as generated from `schemas/`. Loaded at the first such call. */
export async function handleOpenapi(): Promise<object> {
  return (await import("../../schemas/generated/openapi.js")).openapi;
}
