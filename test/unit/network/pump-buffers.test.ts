import { createHash, type Hash, randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { LARGE_BUFFER, ReadBuffers, SMALL_BUFFER } from "../../../broker/network/read-buffers.ts";
import { type Joined, joiner, until } from "../../support/network/joined.ts";

test.each([0, 1, 3])(
  "downloads that stall and go on stay whole with %i large buffers for all of them",
  async (most) => {
    const buffers = new ReadBuffers({ most, kept: 1 });
    const connect = await joiner(buffers);
    const joined: Joined[] = [];
    for (let index = 0; index < 6; index += 1) joined.push(await connect());
    let highest = 0;
    const downloads = joined.map(async ({ client, server }, index) => {
      const sent = createHash("sha256");
      const sending = sendPieces(server, sent, 40);
      const received = createHash("sha256");
      for await (const bytes of client) {
        received.update(bytes as Buffer);
        highest = Math.max(highest, buffers.lent);
        if (Math.random() < 0.05) await delay(index);
      }
      await sending;
      expect(received.digest("hex")).toBe(sent.digest("hex"));
    });
    await Promise.all(downloads);
    expect(highest).toBe(most);
    for (const { client } of joined) client.end();
    await until(() => buffers.lent === 0);
  },
);

test("a download that breaks off while its reader stands still gives its buffers back", async () => {
  for (const how of ["cut", "client", "server"] as const) {
    const buffers = new ReadBuffers();
    const { client, server, world, pump } = await (await joiner(buffers))();
    client.pause();
    server.write(Buffer.alloc(64 * LARGE_BUFFER));
    await until(() => world.writableLength > LARGE_BUFFER && buffers.lent > 0);
    if (how === "cut") pump.cut("enough");
    else if (how === "client") client.resetAndDestroy();
    else {
      server.resetAndDestroy();
      // Nobody looks at the server's side while its bytes have nowhere to go.
      client.resume();
    }
    await pump.ended;
    await until(() => buffers.lent === 0);
  }
});

test("a large buffer is lent only so often, and kept only so often", () => {
  const buffers = new ReadBuffers({ most: 2, kept: 1 });
  const taken = [buffers.take("large"), buffers.take("large"), buffers.take("large"), buffers.take("small")];
  expect(taken.map(({ length }) => length)).toEqual([LARGE_BUFFER, LARGE_BUFFER, SMALL_BUFFER, SMALL_BUFFER]);
  for (const buffer of taken) buffers.giveBack(buffer);
  expect(buffers.lent).toBe(0);
  const again = [buffers.take("large"), buffers.take("large")];
  expect(again[0]).toBe(taken[0]);
  expect(taken).not.toContain(again[1]);
});

/** Pieces of all sizes, so that buffers grow and shrink. */
async function sendPieces(socket: Socket, hash: Hash, count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const bytes = randomBytes(
      index % 5 === 0 ? 1 + Math.floor(Math.random() * 2_000_000) : 1 + ((index * 997) % 20_000),
    );
    hash.update(bytes);
    await new Promise<void>((resolve) => socket.write(bytes, () => resolve()));
    if (index % 7 === 0) await delay(1);
  }
  socket.end();
}
