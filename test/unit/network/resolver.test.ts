import { Resolver } from "node:dns/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { isDnsServer } from "../../../broker/network/ask.ts";
import { internalRange } from "../../../broker/network/names/internal-addresses.ts";
import { HostResolver } from "../../../broker/network/resolver.ts";
import { skip } from "../../support/run/skips.ts";
import { withServer, type Zone } from "./name-server.ts";

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
