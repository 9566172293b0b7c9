import { expect, test } from "vitest";
import { BoundedMap } from "../../../../broker/model/bounded-map.ts";

test("a full cache loses its oldest entry to a new one, and none to a new value of an old one", () => {
  const cache = new BoundedMap<string, number>(2);
  cache.set("a", 1).set("b", 2).set("a", 3);
  expect([...cache]).toEqual([
    ["a", 3],
    ["b", 2],
  ]);
  cache.set("c", 4);
  expect([...cache]).toEqual([
    ["b", 2],
    ["c", 4],
  ]);
});

test("an entry that was taken out and put in again is the newest", () => {
  const cache = new BoundedMap<string, number>(2);
  cache.set("a", 1).set("b", 2);
  cache.delete("a");
  cache.set("a", 1).set("c", 3);
  expect([...cache.keys()]).toEqual(["a", "c"]);
});
