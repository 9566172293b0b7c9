import { mkdtempSync, rmSync } from "node:fs";
import { request } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createListener } from "../../../../api/http/listener.ts";
import type { Broker } from "../../../../broker/broker.ts";

const folder = mkdtempSync(join(tmpdir(), "sb-"));
const path = join(folder, "agent.sock");
const log = { info: () => {}, warn: () => {}, error: () => {} };
const server = createListener({} as Broker, () => ({ kind: "label", reserved: new Set() }), log);

beforeAll(() => new Promise<void>((resolve) => server.listen(path, resolve)));
afterAll(() => {
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

type Sent = {
  readonly method: string;
  readonly at: string;
  readonly headers: Record<string, string>;
  readonly body: string;
};

test.each<[string, Partial<Sent>, number]>([
  ["a path that is none", { method: "GET", at: "/v1/none" }, 404],
  ["a path that cannot be read", { method: "GET", at: "/v1/trace/%ff" }, 400],
  ["a body that is no JSON", { body: "{" }, 400],
  [
    "a body that says that it is too long",
    { headers: { "content-length": "10485761", expect: "100-continue" } },
    413,
  ],
  ["an expectation that is not met", { headers: { expect: "a miracle" }, body: "{}" }, 400],
])("an answer to %s has a request id and an error in the one shape", async (_what, sent, status) => {
  const answer = await answerTo({ method: "POST", at: "/v1/execute", headers: {}, body: "", ...sent });
  expect(answer).toEqual({
    status,
    id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    error: expect.objectContaining({
      code: expect.stringMatching(/./),
      message: expect.stringMatching(/./),
      hint: expect.stringMatching(/./),
    }),
  });
});

test("what is no HTTP gets one too", async () => {
  const socket = connect(path);
  let text = "";
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  socket.write("no http\r\n\r\n");
  await new Promise((resolve) => socket.once("close", resolve));
  expect(text).toMatch(/^HTTP\/1\.1 400 /);
  expect(text).toMatch(/\r\nx-request-id: [0-9a-f-]{36}\r\n/);
  expect(text).toContain('{"error":{"code":"invalid_request"');
});

function answerTo({ method, at, headers, body }: Sent): Promise<object> {
  return new Promise((resolve, reject) => {
    const sent = request({ socketPath: path, method, path: at, headers }, (response) => {
      let text = "";
      response.on("data", (chunk: Buffer) => {
        text += chunk.toString();
      });
      response.on("end", () => {
        sent.destroy();
        const { error } = text === "" ? {} : JSON.parse(text);
        resolve({ status: response.statusCode, id: response.headers["x-request-id"], error });
      });
    });
    sent.on("error", reject);
    if (headers["expect"] === "100-continue") sent.flushHeaders();
    else sent.end(body);
  });
}
