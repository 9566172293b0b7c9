import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { type Allowance, allowanceOf, type ByteBudget } from "../../../broker/network/allowance.ts";
import { FirstBytesReader } from "../../../broker/network/first-bytes.ts";
import { helloMessage, records } from "../../support/network/hellos.ts";
import { brokenBy, join, joiner, readAll, until } from "../../support/network/joined.ts";

const NAME = "good.example";

describe("a budget of bytes", () => {
  test("of 1,000,000 over 50 uploads lets no byte more arrive and nearly all of them, and resets the rest", async () => {
    const total = 1_000_000;
    const budget = new CountedBudget(total);
    const connect = await joiner();
    const joined = await Promise.all(
      Array.from({ length: 50 }, () => connect({ allowance: allowanceOf([], [budget]) })),
    );
    let received = 0;
    for (const { server } of joined) server.on("data", (bytes) => (received += bytes.length));
    const broken = Promise.all(joined.map(({ server }) => brokenBy(server)));
    for (const { client } of joined) client.resume().write(Buffer.alloc(total + 1));
    const ends = await Promise.all(joined.map(({ pump }) => pump.ended));
    expect(new Set(ends.map(({ ended, reason }) => `${ended} ${reason}`))).toEqual(new Set(["cut budget"]));
    expect(new Set(await broken)).toEqual(new Set(["ECONNRESET"]));
    expect(received).toBeLessThanOrEqual(total);
    expect(received).toBeGreaterThan(0.99 * total);
    expect(ends.reduce((sum, { egress }) => sum + egress, 0)).toBe(total);
    expect(budget.left).toBe(0);
  });

  test("lets through to its last byte, and cuts no answer", async () => {
    const budget = new CountedBudget(8);
    const { client, server, pump } = await join({ allowance: allowanceOf([], [budget]) });
    client.end("question");
    expect(String(await readAll(server))).toBe("question");
    server.end(Buffer.alloc(100_000));
    expect((await readAll(client)).length).toBe(100_000);
    expect(await pump.ended).toMatchObject({ ended: "closed", egress: 8, ingress: 100_000 });
  });

  test("of several, the smallest cuts, and the others keep what did not go out", async () => {
    const [small, large] = [new CountedBudget(10), new CountedBudget(1000)];
    for (const budgets of [
      [small, large],
      [large, small],
    ]) {
      const allowance = allowanceOf([], budgets);
      expect(await allowance.take(8)).toBe(8);
      expect(await allowance.take(8)).toBe(2);
      expect(await allowance.take(8)).toBe(0);
      expect([small.left, large.left]).toEqual([0, 990]);
      allowance.giveBack(10);
      expect([small.left, large.left]).toEqual([10, 1000]);
    }
  });

  test("gets back what was taken for a connection that had gone meanwhile", async () => {
    const budget = new CountedBudget(100);
    const late = new LateAllowance(allowanceOf([], [budget]));
    const { client, pump } = await join({ allowance: late });
    client.write("x".repeat(60));
    await until(() => late.asked > 0);
    pump.cut("gone");
    late.answer();
    await until(() => budget.left === 100);
    expect(await pump.ended).toMatchObject({ egress: 0 });
  });

  test("that fails to answer cuts the connection", async () => {
    const failing: Allowance = {
      take: () => {
        throw new Error("no ledger");
      },
      giveBack: () => undefined,
    };
    const { client, server, pump } = await join({ allowance: failing });
    let received = 0;
    server.on("data", (bytes) => (received += bytes.length));
    client.write("x");
    expect(await pump.ended).toMatchObject({ ended: "cut", reason: "no ledger", egress: 0 });
    expect(received).toBe(0);
  });
});

describe("what the world says first", () => {
  test("reaches the server unchanged when it names the right host", async () => {
    const hello = records(helloMessage({ names: [NAME] }), [100]);
    const { client, server } = await join({ firstBytes: reader() });
    client.write(hello.subarray(0, 50));
    client.end(Buffer.concat([hello.subarray(50), Buffer.from("and more")]));
    expect(await readAll(server)).toEqual(Buffer.concat([hello, Buffer.from("and more")]));
  });

  test("reaches the server with no byte when it names another", async () => {
    const hello = records(helloMessage({ names: ["evil.example"] }), [100]);
    const { client, server, pump } = await join({ firstBytes: reader() });
    let received = 0;
    server.on("data", (bytes) => (received += bytes.length));
    const broken = brokenBy(server);
    client.write(hello.subarray(0, 200));
    client.end(hello.subarray(200));
    expect(await pump.ended).toMatchObject({
      ended: "cut",
      reason: "first_bytes",
      egress: 0,
      refused: { kind: "disagrees", protocol: "tls", named: "evil.example" },
    });
    expect(await broken).toBe("ECONNRESET");
    expect(received).toBe(0);
  });

  test("may wait for what the server says first", async () => {
    const { client, server } = await join({ firstBytes: reader() });
    server.write("SSH-2.0-server\r\n");
    await once(client, "data");
    client.end("SSH-2.0-client\r\n");
    expect(String(await readAll(server))).toBe("SSH-2.0-client\r\n");
  });

  test("passes after a moment when it is one word, and what follows is still compared", async () => {
    const { client, server, pump } = await join({ firstBytes: reader() });
    client.write("ruok");
    const [said] = (await once(server, "data")) as [Buffer];
    expect(String(said)).toBe("ruok");
    let received = 0;
    server.on("data", (bytes) => (received += bytes.length));
    client.write(" / HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    expect(await pump.ended).toMatchObject({ ended: "cut", refused: { named: "evil.example" }, egress: 4 });
    expect(received).toBe(0);
  });

  test("that ends before it is whole is judged by what came", async () => {
    const { client, pump } = await join({ firstBytes: reader() });
    client.end(records(helloMessage({ names: [NAME] })).subarray(0, 40));
    expect(await pump.ended).toMatchObject({ ended: "cut", refused: { kind: "malformed" }, egress: 0 });
  });
});

class CountedBudget implements ByteBudget {
  left: number;

  constructor(left: number) {
    this.left = left;
  }

  reserve(bytes: number): number {
    const got = Math.min(bytes, this.left);
    this.left -= got;
    return got;
  }

  settle(reserved: number, used: number): void {
    this.left += reserved - used;
  }
}

/** Takes at once, and says so when it is told to. */
class LateAllowance implements Allowance {
  readonly #inner: Allowance;
  asked = 0;
  #answer: () => void = () => undefined;

  constructor(inner: Allowance) {
    this.#inner = inner;
  }

  async take(wanted: number): Promise<number> {
    this.asked += 1;
    const granted = this.#inner.take(wanted);
    await new Promise<void>((resolve) => (this.#answer = resolve));
    return granted;
  }

  giveBack(bytes: number): void {
    this.#inner.giveBack(bytes);
  }

  answer(): void {
    this.#answer();
  }
}

function reader(): FirstBytesReader {
  return new FirstBytesReader(NAME, (text) => (/^[a-z0-9.-]+$/i.test(text) ? text.toLowerCase() : null));
}
