import { afterEach, describe, expect, test, vi } from "vitest";
import type { Asked } from "../../../broker/network/ask.ts";
import { HostResolver } from "../../../broker/network/resolver.ts";
import { withServer, type Zone } from "./name-server.ts";

const { signal } = new AbortController();
const NO_SERVERS = { servers: [], refreshSecs: 60 };

afterEach(() => {
  vi.useRealTimers();
});

/** Only the clock that answers grow old by: time goes by when a test says so. */
function stopClock(): void {
  vi.useFakeTimers({ toFake: ["performance"] });
}

describe("how long an answer is kept", () => {
  function rotating(ttl: number): Zone {
    let turn = 0;
    return (_, type) => (type === "A" ? { addresses: [`203.0.113.${++turn}`], ttl } : {});
  }

  async function now(resolver: HostResolver): Promise<string | undefined> {
    const resolution = await resolver.resolve("a.example", signal);
    return resolution.kind === "found" ? resolution.addresses.join() : resolution.code;
  }

  test.each([
    ["its TTL", 30, 60, 29_900, 30_100],
    ["refresh_secs, when its TTL is longer", 3600, 60, 59_900, 60_100],
    ["a second, when its TTL is nothing", 0, 60, 900, 1_100],
  ])("as long as %s", async (_, ttl, refreshSecs, before, after) => {
    stopClock();
    const [server, resolver] = await withServer(rotating(ttl), refreshSecs);
    using __ = server;
    expect(await now(resolver)).toBe("203.0.113.1");
    vi.advanceTimersByTime(before);
    expect(await now(resolver)).toBe("203.0.113.1");
    vi.advanceTimersByTime(after - before);
    expect(await now(resolver)).toBe("203.0.113.2");
  });

  test("a failure is believed for a second", async () => {
    stopClock();
    let code = 2;
    const [server, resolver] = await withServer((_, type) =>
      type === "A" ? { code, addresses: code === 0 ? ["203.0.113.1"] : [] } : {},
    );
    using _ = server;
    expect(await now(resolver)).toBe("ESERVFAIL");
    code = 0;
    vi.advanceTimersByTime(900);
    expect(await now(resolver)).toBe("ESERVFAIL");
    vi.advanceTimersByTime(200);
    expect(await now(resolver)).toBe("203.0.113.1");
  });

  test("an address that stopped working is asked for anew before its time, but not in a loop", async () => {
    stopClock();
    const [server, resolver] = await withServer(rotating(3600), 3600);
    using _ = server;
    expect(await now(resolver)).toBe("203.0.113.1");
    resolver.forget("a.example");
    expect(await now(resolver)).toBe("203.0.113.1");
    vi.advanceTimersByTime(1_000);
    resolver.forget("a.example");
    expect(await now(resolver)).toBe("203.0.113.2");
    resolver.forget("never.example");
  });
});

describe("who asks", () => {
  test("fifty at once are one question", async () => {
    const [server, resolver] = await withServer((_, type) =>
      type === "A" ? { addresses: ["203.0.113.1"] } : {},
    );
    using _ = server;
    const answers = await Promise.all(
      Array.from({ length: 50 }, async () => await resolver.resolve("a.example", signal)),
    );
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    expect(server.asked).toHaveLength(2);
  });

  test("who gives up leaves the others their answer", async () => {
    let answer: ((asked: Asked) => void) | undefined;
    const asked = new Promise<Asked>((resolve) => {
      answer = resolve;
    });
    const resolver = new HostResolver(NO_SERVERS, async () => await asked);
    const gone = new AbortController();
    const first = resolver.resolve("a.example", gone.signal);
    const second = resolver.resolve("a.example", signal);
    const reason = new Error("gone");
    gone.abort(reason);
    await expect(first).rejects.toBe(reason);
    answer?.({ addresses: ["203.0.113.1"], ttl: undefined });
    expect(await second).toEqual({ kind: "found", addresses: ["203.0.113.1"] });
  });

  test("beyond 128 names at once there is no room, until one is answered", async () => {
    const ends: (() => void)[] = [];
    const resolver = new HostResolver(NO_SERVERS, async () => {
      await new Promise<void>((resolve) => ends.push(resolve));
      return { addresses: ["203.0.113.1"], ttl: undefined };
    });
    const asked = Array.from(
      { length: 128 },
      async (_, at) => await resolver.resolve(`${at}.example`, signal),
    );
    expect(await resolver.resolve("a.example", signal)).toEqual({ kind: "failed", code: "EBUSY" });
    ends.shift()?.();
    await asked[0];
    const answer = resolver.resolve("a.example", signal);
    await expect.poll(() => ends.length).toBe(128);
    for (const end of ends) end();
    expect(await answer).toMatchObject({ kind: "found" });
    await Promise.all(asked);
  });

  test("an answer without addresses is a failure", async () => {
    const resolver = new HostResolver(
      NO_SERVERS,
      async () => await Promise.resolve({ addresses: [], ttl: 60 }),
    );
    expect(await resolver.resolve("a.example", signal)).toEqual({ kind: "failed", code: "ENODATA" });
  });

  test("4,096 names are kept, and the one that nobody used goes first", async () => {
    const asked: string[] = [];
    const resolver = new HostResolver(NO_SERVERS, async (name) => {
      asked.push(name);
      return await Promise.resolve({
        addresses: Array.from({ length: 100 }, (_, at) => `203.0.113.${at}`),
        ttl: 3600,
      });
    });
    for (let at = 0; at < 4096; at++) await resolver.resolve(`${at}.example`, signal);
    await resolver.resolve("0.example", signal);
    await resolver.resolve("one-more.example", signal);
    expect(asked).toHaveLength(4097);
    const again = await resolver.resolve("0.example", signal);
    expect(again.kind === "found" && again.addresses.length).toBe(64);
    expect(asked).toHaveLength(4097);
    await resolver.resolve("1.example", signal);
    expect(asked.at(-1)).toBe("1.example");
  });
});
