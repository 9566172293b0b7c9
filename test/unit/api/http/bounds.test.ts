import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { MOST_WAITING, turnFor, Turns } from "../../../../api/http/bounds.ts";

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
