import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { Room } from "../../../../api/http/bounds.ts";
import { answering } from "../../../../api/http/call.ts";
import type { Context } from "../../../../api/http/context.ts";

test("where unread answers fill their room, a GET is refused, and a call that has done something is answered", async () => {
  const context = { bodies: new Room(), replies: new Room(0, 0) } as Context;
  const answer = answering(
    () => Promise.resolve({ valid: undefined }),
    () => ({ done: true }),
  );
  const server = createServer((asked, response) => void answer(context, asked, response)).listen(
    0,
    "127.0.0.1",
  );
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  const status = (method: string): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const asking = request({ host: "127.0.0.1", port, method }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      asking.once("error", reject).end();
    });
  try {
    expect([await status("GET"), await status("POST")]).toEqual([503, 200]);
  } finally {
    server.close();
    server.closeAllConnections();
  }
});
