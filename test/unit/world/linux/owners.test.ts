import { expect, test } from "vitest";
import { Owners } from "../../../../world/linux/owners.ts";

test("an init that does not answer is asked about so many sockets and no more, and then about others again", async () => {
  const sent: Buffer[] = [];
  const owners = new Owners((frame) => sent.push(frame));
  const asked = Array.from({ length: 10_000 }, (_, at) => owners.ask(at + 1));
  expect(await Promise.all(asked.slice(-100))).toEqual(Array.from({ length: 100 }, () => undefined));
  expect(sent.length).toBeLessThanOrEqual(1024);
  owners.take(1, Buffer.alloc(0));
  expect(await asked[0]).toBeUndefined();
  const before = sent.length;
  void owners.ask(1);
  expect(sent.length).toBe(before + 1);
  owners.close();
  await Promise.all(asked);
});
