import { EventEmitter } from "node:events";
import type { Server } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { ConnectionShares, MOST_WAITING, Turns } from "../../../../api/http/bounds.ts";
import { turnFor } from "../../../../broker/model/turns.ts";

test("the first call begins at once, later ones in order and in later turns, and commands do not wait behind lists", async () => {
  const turns = new Turns();
  const begun: string[] = [];
  for (let count = 0; count < 5; count += 1) turns.take("other", () => begun.push(`list ${count}`));
  turns.take("direct", () => begun.push("command"));
  expect(begun).toEqual(["list 0", "command"]);
  await turn();
  expect(begun.length).toBeLessThan(6);
  for (let count = 0; count < 10; count += 1) await turn();
  expect(begun).toEqual(["list 0", "command", "list 1", "list 2", "list 3", "list 4"]);
});

test("more than can wait are refused, and taken again when others have begun", async () => {
  const turns = new Turns();
  const take = (): boolean => turns.take("other", () => {});
  const taken = Array.from({ length: MOST_WAITING + 10 }, take);
  expect(taken.filter(Boolean)).toHaveLength(MOST_WAITING + 1);
  expect(taken.at(-1)).toBe(false);
  await turn();
  await turn();
  expect(take()).toBe(true);
});

test("long requests have a turn each, with others between them; a short one waits for none", async () => {
  const begun: string[] = [];
  const long = ["one", "two", "three"].map(async (name) => {
    await turnFor(60_000);
    begun.push(name);
  });
  expect(turnFor(100)).toBeUndefined();
  const between: number[] = [];
  while (begun.length < 3) {
    await turn();
    between.push(begun.length);
  }
  await Promise.all(long);
  expect(begun).toEqual(["one", "two", "three"]);
  expect(between.slice(0, 3).every((count, at) => count <= at + 1)).toBe(true);
});

test("one socket's connections take an eighth of the descriptors and all sockets' a quarter, until some close", () => {
  let excess = 0;
  const shares = new ConnectionShares((socket) => {
    excess += 1;
    socket.destroy();
  }, 80);
  class Peer extends EventEmitter {
    isOpen = true;
    destroy(): void {
      this.isOpen = false;
      this.emit("close");
    }
  }
  const servers = ["a", "b", "c"].map(() => shares.bound(new EventEmitter() as unknown as Server));
  const connectTo = (server: Server | undefined, count: number): readonly Peer[] =>
    Array.from({ length: count }, () => {
      const peer = new Peer();
      server?.emit("connection", peer);
      return peer;
    });
  const open = (peers: readonly Peer[]): number => peers.filter(({ isOpen }) => isOpen).length;
  const [first, second, third] = servers.map((server) => connectTo(server, 12));
  expect([first, second, third].map((peers) => open(peers ?? []))).toEqual([10, 10, 0]);
  expect(excess).toBe(2 + 2 + 12);
  for (const peer of second ?? []) peer.destroy();
  expect(open(connectTo(servers[2], 12))).toBe(10);
});
