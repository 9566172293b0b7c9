/** Bodies within the limit of bytes that would take the broker's only thread for seconds each. */
import { readFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestBroker } from "../support/broker/broker.ts";
import { actors } from "../support/users/users.ts";

const BYTES = 6_000_000;
const TIMES = 3;

const bodyOf = (value: string): Buffer => Buffer.from(`{"agent_id":"me","cmd":"ls","env":${value}}`);
const listOf = (count: number, one: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => one(index)).join(",");

const PLAIN = bodyOf(`{"A":"${"x".repeat(BYTES)}"}`);
const HOSTILE: readonly (readonly [string, Buffer])[] = [
  ["millions of brackets", bodyOf("[".repeat(BYTES / 2) + "]".repeat(BYTES / 2))],
  ["millions of braces that stay open", bodyOf('{"a":'.repeat(BYTES / 5))],
  ["hundreds of thousands of names", bodyOf(`{${listOf(BYTES / 12, (index) => `"n${index}":1`)}}`)],
  ["millions of numbers", bodyOf(`[${listOf(BYTES / 2, () => "1")}]`)],
];

describe.each(actors())("a body of many values, as $kind", (actor) => {
  let broker: TestBroker;
  let plain: number;
  const agent = (): string => join(broker.home, "sock/agent.sock");

  /** The broker's processor time for some of these bodies, in clock ticks. */
  const cost = async (body: Buffer): Promise<number> => {
    const before = ticksOf(broker);
    for (let count = 0; count < TIMES; count += 1) await checked(agent(), "/v1/check", body);
    return ticksOf(broker) - before;
  };

  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: "id: default\nname: x\n" } });
    await checked(agent(), "/v1/check", PLAIN);
    plain = Math.max(1, await cost(PLAIN));
  });
  afterAll(() => broker.stop());

  test.each(HOSTILE)("%s cost no more than a body of text of that length", async (_what, body) => {
    expect(await checked(agent(), "/v1/check", body)).toMatch(/nested deeper than|more than \d+ values/);
    expect(await cost(body)).toBeLessThanOrEqual(2 * plain);
  });

  test("all that a call may carry is read: 65,536 words, 4,096 variables, and any text", async () => {
    const check = (body: object): Promise<{ readonly status: number }> =>
      broker.call("POST", "/v1/check", { agent_id: "me", cwd: broker.project, ...body });
    const argv = Array.from({ length: 65_536 }, () => "x");
    expect(await check({ argv })).toMatchObject({ status: 200 });
    const env = Object.fromEntries(Array.from({ length: 4096 }, (_, index) => [`N${index}`, "1"]));
    expect(await check({ cmd: "ls", env })).toMatchObject({ status: 200 });
    expect(await check({ cmd: `echo '${'[{,\\"'.repeat(20_000)}'` })).toMatchObject({ status: 200 });
  });
});

function checked(socketPath: string, path: string, body: Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { "content-length": body.length };
    request({ socketPath, path, method: "POST", headers }, (response) => resolve(text(response)))
      .once("error", reject)
      .end(body);
  });
}

/** utime and stime (proc(5), /proc/PID/stat). */
function ticksOf({ process: { pid } }: TestBroker): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1]?.split(" ") ?? [];
  return Number(fields[11]) + Number(fields[12]);
}
