import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { allowanceOf } from "../../../broker/network/allowance.ts";
import { Bound } from "../../../broker/network/bound.ts";
import { Egress } from "../../../broker/network/egress.ts";
import { FirstBytesReader } from "../../../broker/network/first-bytes.ts";
import { joiner, until } from "../../support/network/joined.ts";
import { NAME, spell } from "../../support/network/hellos.ts";

const CONNECTIONS = 20;

/** Each of them begins something that never comes to an end. */
test.each([
  ["a header line", "GET / HTTP/1.1\r\nA: ", 60_000, Buffer.from("b")],
  ["header lines", "GET / HTTP/1.1\r\n", 60_000, Buffer.from("a: b\r\n")],
  ["a ClientHello", "\x16\x03\x01\x40\x00\x01\x00\xf0\x00", 16_000, Buffer.from("b")],
])("%s that comes byte by byte takes little more memory than it has bytes", (_, start, bytes, piece) => {
  const before = used();
  const kept = Array.from({ length: CONNECTIONS }, () =>
    heldAfter(Buffer.from(start, "latin1"), bytes, piece),
  );
  const each = (used() - before) / CONNECTIONS;
  expect(kept.map(({ firstBytes }) => firstBytes.answer.kind)).toEqual(kept.map(() => "undecided"));
  expect(each).toBeLessThan(6 * bytes);
});

test("what a world's connections hold back together is bounded, and free again when it has gone or was cut", async () => {
  const held = new Bound(1000);
  const connect = await joiner();
  const part = `GET / HTTP/1.1\r\nA: ${"a".repeat(600)}`;
  const first = await connect({ firstBytes: new FirstBytesReader(NAME, spell), held });
  first.client.write(part);
  await until(() => first.world.bytesRead === part.length);
  const second = await connect({ firstBytes: new FirstBytesReader(NAME, spell), held });
  second.client.write(part);
  expect((await second.pump.ended).refused?.kind).toBe("malformed");
  first.client.write("\r\n\r\n");
  await until(() => first.pump.egress > part.length);
  const third = await connect({ firstBytes: new FirstBytesReader(NAME, spell), held });
  third.client.write(part);
  await until(() => third.world.bytesRead === part.length);
  expect(held.take(600)).toBe(false);
  third.pump.cut("enough");
  expect(held.take(1000)).toBe(true);
});

/** One connection that has sent so many bytes, each in a buffer of its own, as the kernel gives them. */
function heldAfter(
  start: Buffer,
  bytes: number,
  piece: Buffer,
): { firstBytes: FirstBytesReader; egress: Egress } {
  const firstBytes = new FirstBytesReader(NAME, spell);
  const world = Object.assign(new EventEmitter(), { resume: () => undefined, pause: () => undefined });
  const never = (): never => {
    throw new Error("Nothing was to be decided");
  };
  const egress = new Egress({
    world: world as unknown as Socket,
    upstream: Object.assign(new EventEmitter(), {
      write: () => true,
      writableLength: 0,
    }) as unknown as Socket,
    allowance: allowanceOf([], []),
    firstBytes,
    held: undefined,
    onRefused: never,
    onSpent: never,
    onFailed: never,
  });
  egress.start();
  world.emit("data", start);
  for (let sent = 0; sent < bytes; sent += 1)
    world.emit("data", new Uint8Array([piece[sent % piece.length] ?? 0]));
  return { firstBytes, egress };
}

/** Bytes in use, after everything that is garbage is gone. */
function used(): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  const { heapUsed, external, arrayBuffers } = process.memoryUsage();
  return heapUsed + Math.max(external, arrayBuffers);
}
