import { type Socket, createSocket } from "node:dgram";
import { Resolver } from "node:dns/promises";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { type Answer, decode, encode } from "dns-packet";
import { afterEach, describe, expect, test, vi } from "vitest";
import { type Asked, isDnsServer } from "../../../../broker/network/ask.ts";
import { internalRange } from "../../../../broker/network/names/internal-addresses.ts";
import { HostResolver } from "../../../../broker/network/resolver.ts";
import { skip } from "../../../support/run/skips.ts";

// A DNS server on the loopback that says what a test wants, and counts what it was asked.

type Say = { readonly code?: number; readonly addresses?: readonly string[]; readonly ttl?: number };

/** What to say to a name and type, which is `A` or `AAAA`; undefined is silence. */
type Zone = (name: string, type: string) => Say | undefined;

class NameServer implements Disposable {
  /** `A www.a.example`, in the order of the questions. */
  readonly asked: string[] = [];
  readonly address: string;
  readonly #socket: Socket;

  static async start(zone: Zone): Promise<NameServer> {
    const socket = createSocket("udp4");
    socket.bind(0, "127.0.0.1");
    await once(socket, "listening");
    return new NameServer(socket, zone);
  }

  private constructor(socket: Socket, zone: Zone) {
    this.#socket = socket;
    this.address = `127.0.0.1:${socket.address().port}`;
    socket.on("message", (message, from) => {
      const reply = this.#reply(message, zone);
      if (reply !== undefined) socket.send(reply, from.port, from.address);
    });
  }

  [Symbol.dispose](): void {
    this.#socket.close();
  }

  #reply(message: Buffer, zone: Zone): Buffer | undefined {
    const { id, questions } = decode(message);
    const [question] = questions ?? [];
    if (question === undefined) return undefined;
    const { name, type } = question;
    this.asked.push(`${type} ${name}`);
    const say = zone(name.toLowerCase(), type);
    if (say === undefined) return undefined;
    const { code = 0, addresses = [], ttl = 60 } = say;
    const answers = addresses.map((data) => ({ name, type, ttl, data }) as Answer);
    return encode({
      type: "response",
      ...(id === undefined ? {} : { id }),
      flags: 0x0180 | code,
      questions: [question],
      answers,
    });
  }
}

const { signal } = new AbortController();
const NO_SERVERS = { servers: [], refreshSecs: 60 };

function only(type: string, ...addresses: string[]): Zone {
  return (_, asked) => (asked === type ? { addresses } : {});
}

describe("names asked of given servers", () => {
  test("both families come back, and nobody else is asked", async () => {
    const [server, resolver] = await withServer((_, type) => ({
      addresses: type === "A" ? ["203.0.113.1", "203.0.113.2"] : ["2001:db8::1"],
    }));
    using _ = server;
    expect(await resolver.resolve("a.example", signal)).toEqual({
      kind: "found",
      addresses: ["2001:db8::1", "203.0.113.1", "203.0.113.2"],
    });
    expect(server.asked.toSorted()).toEqual(["A a.example", "AAAA a.example"]);
  });

  test("internal addresses come back as they are: who dials decides", async () => {
    const [server, resolver] = await withServer(only("A", "127.0.0.1", "169.254.169.254"));
    using _ = server;
    expect(await resolver.resolve("a.example", signal)).toMatchObject({
      addresses: ["127.0.0.1", "169.254.169.254"],
    });
  });

  test("one family without an answer leaves the other", async () => {
    const [v4, resolver4] = await withServer(only("A", "203.0.113.1"));
    using _ = v4;
    expect(await resolver4.resolve("a.example", signal)).toEqual({
      kind: "found",
      addresses: ["203.0.113.1"],
    });
    const [v6, resolver6] = await withServer((_name, type) =>
      type === "AAAA" ? { addresses: ["2001:db8::1"] } : { code: 2 },
    );
    using __ = v6;
    expect(await resolver6.resolve("a.example", signal)).toEqual({
      kind: "found",
      addresses: ["2001:db8::1"],
    });
  });

  test("a server that is silent about IPv6 holds nothing up", async () => {
    const [server, resolver] = await withServer((_, type) =>
      type === "A" ? { addresses: ["203.0.113.1"] } : undefined,
    );
    using _ = server;
    const since = performance.now();
    expect(await resolver.resolve("a.example", signal)).toEqual({
      kind: "found",
      addresses: ["203.0.113.1"],
    });
    // Whoever waited for it would wait for five seconds.
    expect(performance.now() - since).toBeLessThan(4_000);
  });

  test.each([
    ["ENOTFOUND", { code: 3 }],
    ["ESERVFAIL", { code: 2 }],
    ["EREFUSED", { code: 5 }],
    ["ENODATA", {}],
  ])("%s is said when the server does", async (code, say) => {
    const [server, resolver] = await withServer(() => say);
    using _ = server;
    expect(await resolver.resolve("a.example", signal)).toEqual({ kind: "failed", code });
  });

  test("silence ends after five seconds, for all who wait", async () => {
    const [server, resolver] = await withServer(() => undefined);
    using _ = server;
    const since = performance.now();
    const failed = { kind: "failed", code: "ETIMEOUT" };
    const waiting = [resolver.resolve("a.example", signal), resolver.resolve("a.example", signal)];
    expect(await Promise.all(waiting)).toEqual([failed, failed]);
    expect(performance.now() - since).toBeGreaterThan(4_900);
    expect(performance.now() - since).toBeLessThan(20_000);
  });

  test("no server at all is said at once", async () => {
    const [server, resolver] = await withServer(() => ({}));
    server[Symbol.dispose]();
    await sleep(20);
    expect(await resolver.resolve("a.example", signal)).toEqual({ kind: "failed", code: "ECONNREFUSED" });
  });

  test.each([
    "a.example",
    "a.example:53",
    "",
    ":53",
    "127.0.0.1:x",
    "127.0.0.1:",
    "127.0.0.1:0",
    "127.0.0.1:00",
    "127.0.0.1:65536",
    "127.0.0.1:99999",
    "127.0.0.1:-1",
    "127.0.0.1:1e3",
    "127.1",
    "127.0.0.01",
    "::1:99999",
    "[::1]:0",
    "[::1]:",
    "[127.0.0.1]:53",
    "[]:53",
    "fe80::1%lo",
    "[fe80::1%lo]:53",
    "127.0.0.1\n",
    " ::1",
  ])("%j is no server, and Node is not asked about it", (server) => {
    expect(() => new HostResolver({ servers: [server], refreshSecs: 60 })).toThrow(TypeError);
  });

  test.each([
    "127.0.0.1",
    "127.0.0.1:1",
    "127.0.0.1:65535",
    "::1",
    "[::1]",
    "[::1]:53",
    "2001:db8::192.0.2.1",
  ])("%s is a server, for Node too", (server) => {
    expect(isDnsServer(server)).toBe(true);
    new Resolver().setServers([server]);
  });
});

describe("names asked of the host", () => {
  test("its hosts file counts", async () => {
    const resolution = await new HostResolver(NO_SERVERS).resolve("localhost", signal);
    if (resolution.kind === "failed")
      return skip("names of the hosts file", "this machine has none that names localhost");
    expect(resolution.addresses.every((address) => internalRange(address) === "loopback")).toBe(true);
  });

  test("a name that getaddrinfo reads as an address becomes one, so the check comes after it", async () => {
    const resolution = await new HostResolver(NO_SERVERS).resolve("127.1", signal);
    expect(resolution).toEqual({ kind: "found", addresses: ["127.0.0.1"] });
  });

  test("a name that cannot be has an error and no address", async () => {
    expect(await new HostResolver(NO_SERVERS).resolve(`${"a".repeat(64)}.invalid`, signal)).toMatchObject({
      kind: "failed",
    });
  });
});

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

/** A server, and a resolver that asks it alone. */
async function withServer(zone: Zone, refreshSecs = 60): Promise<[NameServer, HostResolver]> {
  const server = await NameServer.start(zone);
  return [server, new HostResolver({ servers: [server.address], refreshSecs })];
}
