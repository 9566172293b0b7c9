import { Readable } from "node:stream";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isForwarded, MAX_MESSAGE, messagesOf } from "../../../../broker/ssh-agent/messages.ts";
import { extension, message, messagesIn, string } from "../../../support/programs/ssh-agent-client.ts";

const all = async (chunks: readonly Buffer[]): Promise<readonly Buffer[]> =>
  messagesIn(Readable.from(chunks));

describe("messages of the ssh-agent protocol", () => {
  test("are the same however the stream is cut", async () => {
    const bodies = fc.array(fc.uint8Array({ minLength: 1, maxLength: 40 }), { maxLength: 8 });
    const cuts = fc.array(fc.nat(400), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(bodies, cuts, async (sent, at) => {
        const expected = sent.map((body) => string(Buffer.from(body)));
        const bytes = Buffer.concat(expected);
        const edges = [
          0,
          ...at.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b),
          bytes.length,
        ];
        const chunks = edges.slice(1).map((edge, index) => bytes.subarray(edges[index], edge));
        expect(await all(chunks)).toEqual(expected);
      }),
    );
  });

  test("come one by one from one chunk, and byte by byte from many", async () => {
    const [first, second] = [message(11), message(13, Buffer.alloc(300, 7))];
    const joined = Buffer.concat([first, second]);
    expect(await all([joined])).toEqual([first, second]);
    expect(await all([...joined].map((byte) => Buffer.from([byte])))).toEqual([first, second]);
  });

  test("of ssh-agent's own bound pass, and longer or empty ones break off after those before them", async () => {
    const longest = string(Buffer.alloc(MAX_MESSAGE, 13));
    expect(await all([longest])).toEqual([longest]);
    for (const length of [0, MAX_MESSAGE + 1, 0xffffffff]) {
      const head = Buffer.alloc(4);
      head.writeUInt32BE(length);
      const messages = messagesOf(Readable.from([Buffer.concat([message(11), head])]));
      expect((await messages.next()).value).toEqual(message(11));
      await expect(messages.next()).rejects.toThrow(`1 to 262144 bytes, received ${length}`);
    }
  });

  test("that the stream cuts off are dropped", async () => {
    expect(await all([message(11), message(13, Buffer.alloc(9)).subarray(0, 7)])).toEqual([message(11)]);
  });
});

describe("what reaches the agent", () => {
  test("is listing, signing, and two extensions; of all other types none", () => {
    const types = [...Array(256).keys()].filter((type) => isForwarded(message(type, Buffer.alloc(64))));
    expect(types).toEqual([11, 13]);
    expect(isForwarded(extension("session-bind@openssh.com", string("key")))).toBe(true);
    expect(isForwarded(extension("query"))).toBe(true);
  });

  test.each([
    ["another name", extension("restrict-destination-v00@openssh.com")],
    ["a longer name", extension("query2")],
    ["a shorter name", extension("quer")],
    ["a name with a NUL", extension("query\0")],
    ["no name", extension("")],
    ["no length", message(27)],
    ["half a length", message(27, Buffer.from([0, 0]))],
    ["a name that ends later than the message", message(27, string("query").subarray(0, 7))],
    ["a length beyond any message", message(27, Buffer.from([255, 255, 255, 255]), Buffer.from("query"))],
  ])("is no extension with %s", (_, request) => {
    expect(isForwarded(request)).toBe(false);
  });
});
