import { expect, test } from "vitest";
import { mostConnections } from "../../../broker/network/gateway.ts";

const limits = (soft: string): string =>
  `Limit                     Soft Limit           Hard Limit           Units\nMax processes             10                   10                   processes\nMax open files            ${soft.padEnd(20)} 1048576              files\n`;

test("half of the broker's descriptors are for connections, two for each", () => {
  expect(mostConnections(limits("1024"))).toBe(256);
  expect(mostConnections(limits("20000"))).toBe(5000);
  expect(mostConnections(limits("1048576"))).toBe(16_384);
  expect(mostConnections(limits("unlimited"))).toBe(16_384);
  expect(mostConnections()).toBeGreaterThan(0);
});
