import { describe, expect, test } from "vitest";
import { OutputMessages } from "../../../../api/http/output-messages.ts";

const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Copies what is sent, as the kernel does. */
function recorder(): {
  readonly messages: Buffer[];
  readonly sent: (() => void)[];
  readonly output: OutputMessages;
} {
  const messages: Buffer[] = [];
  const sent: (() => void)[] = [];
  const output = new OutputMessages((message, done) => {
    messages.push(Buffer.from(message));
    sent.push(done);
  });
  return { messages, sent, output };
}

describe("messages of a command's output", () => {
  test("what comes in one turn is one message, and the next turn's another", async () => {
    const { messages, output } = recorder();
    output.add(1, Buffer.from("one "), () => {});
    output.add(1, Buffer.from("two"), () => {});
    expect(messages).toEqual([]);
    await tick();
    output.add(1, Buffer.from("three"), () => {});
    await tick();
    expect(messages.map(String)).toEqual(["\x01one two", "\x01three"]);
  });

  test("two streams keep their order", async () => {
    const { messages, output } = recorder();
    output.add(1, Buffer.from("a"), () => {});
    output.add(2, Buffer.from("b"), () => {});
    output.add(1, Buffer.from("c"), () => {});
    await tick();
    expect(messages.map(String)).toEqual(["\x01a", "\x02b", "\x01c"]);
  });

  test("each part is reported as taken once, after the message with its last byte", async () => {
    const { messages, sent, output } = recorder();
    const taken: string[] = [];
    output.add(1, Buffer.from("short"), () => taken.push("short"));
    output.add(1, Buffer.alloc(300 * 1024, "x"), () => taken.push("long"));
    await tick();
    expect(messages.length).toBe(3);
    sent[0]?.();
    expect(taken).toEqual(["short"]);
    sent[1]?.();
    expect(taken).toEqual(["short"]);
    sent[2]?.();
    expect(taken).toEqual(["short", "long"]);
    const whole = Buffer.concat(messages.map((message) => message.subarray(1)));
    expect(whole.equals(Buffer.concat([Buffer.from("short"), Buffer.alloc(300 * 1024, "x")]))).toBe(true);
  });

  test("a message that waits in a socket is not overwritten by later ones", async () => {
    const waiting: Buffer[] = [];
    const output = new OutputMessages((message) => waiting.push(message));
    for (const word of ["first", "second", "third"]) {
      output.add(1, Buffer.from(word), () => {});
      await tick();
    }
    expect(waiting.map(String)).toEqual(["\x01first", "\x01second", "\x01third"]);
  });
});
