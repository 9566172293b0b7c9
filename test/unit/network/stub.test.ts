import { Resolver } from "node:dns/promises";
import { describe, expect, test } from "vitest";
import { WorldStub } from "../../support/network/world-stub.ts";
import { leastWaitMs } from "../../support/processes/cost.ts";

const ALLOWED = ["a.example", "b.example"];

describe("what a world's DNS says", () => {
  test("an allowed name has the one address that stands for it", async () => {
    using world = await WorldStub.start(ALLOWED);
    const reply = await world.askName("a.example", "A");
    expect(reply).toMatchObject({
      id: 0x1234,
      type: "response",
      rcode: "NOERROR",
      flag_rd: true,
      flag_ra: true,
    });
    expect(reply.questions).toEqual([{ name: "a.example", type: "A", class: "IN" }]);
    expect(reply.answers).toEqual([
      { name: "a.example", type: "A", class: "IN", ttl: 5, flush: false, data: "198.18.0.1" },
    ]);
    expect(reply.flag_tc).toBe(false);
    expect((await world.askName("b.example", "A")).answers).toMatchObject([{ data: "198.18.0.2" }]);
    expect((await world.askName("a.example", "A")).answers).toMatchObject([{ data: "198.18.0.1" }]);
    expect(world.addresses.nameOf("198.18.0.1")).toBe("a.example");
    expect(world.refused).toEqual([]);
  });

  test.each(["AAAA", "MX", "TXT", "SRV", "NS", "SOA", "CNAME", "CAA", "ANY", "UNKNOWN_64", "UNKNOWN_65"])(
    "an allowed name has no %s, and may still be asked for an address",
    async (type) => {
      using world = await WorldStub.start(ALLOWED);
      const reply = await world.askName("a.example", type);
      expect(reply).toMatchObject({ rcode: "NOERROR", answers: [], authorities: [], flag_ra: true });
      expect(world.refused).toEqual([]);
    },
  );

  test("any other name does not exist, for no type, and is told of", async () => {
    using world = await WorldStub.start(ALLOWED);
    for (const name of ["evil.example", "evila.example", "a.example.evil", "sub.a.example", "example"])
      expect(await world.askName(name, "A")).toMatchObject({
        rcode: "NXDOMAIN",
        answers: [],
        authorities: [],
      });
    expect(await world.askName("c2VjcmV0.evil.example", "TXT")).toMatchObject({ rcode: "NXDOMAIN" });
    expect(world.refused).toEqual([
      "A evil.example",
      "A evila.example",
      "A a.example.evil",
      "A sub.a.example",
      "A example",
      "TXT c2vjcmv0.evil.example",
    ]);
    expect(world.addresses.nameOf("198.18.0.1")).toBeUndefined();
  });

  test("case is echoed as it came, and makes no other name", async () => {
    using world = await WorldStub.start(ALLOWED);
    const reply = await world.askName("A.eXaMpLe", "A");
    expect(reply.questions).toMatchObject([{ name: "A.eXaMpLe" }]);
    expect(reply.answers).toMatchObject([{ name: "A.eXaMpLe", data: "198.18.0.1" }]);
    expect((await world.askName("a.example", "A")).answers).toMatchObject([{ data: "198.18.0.1" }]);
  });

  test("names are asked for anew each time, so a changed rule counts at once", async () => {
    const allowed = ["a.example"];
    using world = await WorldStub.start(allowed);
    expect(await world.askName("b.example", "A")).toMatchObject({ rcode: "NXDOMAIN" });
    allowed.splice(0, 1, "b.example");
    expect(await world.askName("b.example", "A")).toMatchObject({ rcode: "NOERROR" });
    expect(await world.askName("a.example", "A")).toMatchObject({ rcode: "NXDOMAIN" });
  });

  test("localhost and all below it are the world itself", async () => {
    using world = await WorldStub.start([]);
    for (const name of ["localhost", "LOCALHOST", "app.localhost"])
      expect((await world.askName(name, "A")).answers).toMatchObject([{ name, data: "127.0.0.1" }]);
    expect(await world.askName("localhost", "AAAA")).toMatchObject({ rcode: "NOERROR", answers: [] });
    expect(await world.askName("notlocalhost", "A")).toMatchObject({ rcode: "NXDOMAIN" });
    expect(await world.askName("localhost.evil", "A")).toMatchObject({ rcode: "NXDOMAIN" });
  });

  test("a reverse look-up finds nobody, and is only told of when it is not for our own addresses", async () => {
    using world = await WorldStub.start(ALLOWED);
    for (const name of [
      "1.0.18.198.in-addr.arpa",
      "1.0.19.198.in-addr.arpa",
      "1.0.0.127.in-addr.arpa",
      "8.8.8.8.in-addr.arpa",
    ])
      expect(await world.askName(name, "PTR")).toMatchObject({ rcode: "NXDOMAIN" });
    expect(world.refused).toEqual(["PTR 8.8.8.8.in-addr.arpa"]);
  });

  test("a service of an allowed name is missing, but nothing is held back", async () => {
    using world = await WorldStub.start(ALLOWED);
    expect(await world.askName("_http._tcp.a.example", "SRV")).toMatchObject({ rcode: "NXDOMAIN" });
    expect(await world.askName("_http._tcp.evil.example", "SRV")).toMatchObject({ rcode: "NXDOMAIN" });
    expect(await world.askName("x._tcp.a.example", "SRV")).toMatchObject({ rcode: "NXDOMAIN" });
    expect(world.refused).toEqual(["SRV _http._tcp.evil.example", "SRV x._tcp.a.example"]);
  });

  test("when addresses are used up the server fails: the name is not said to be missing", async () => {
    using world = await WorldStub.start(ALLOWED, { addressOf: () => null });
    expect(await world.askName("a.example", "A")).toMatchObject({ rcode: "SERVFAIL", answers: [] });
    expect(await world.askName("a.example", "AAAA")).toMatchObject({ rcode: "NOERROR" });
    expect(await world.askName("evil.example", "A")).toMatchObject({ rcode: "NXDOMAIN" });
  });

  test("rules that throw are answered with a failure, and the next question as ever", async () => {
    const wrong = new Error("wrong");
    using world = await WorldStub.start(ALLOWED, {
      decide: (name) => {
        if (name === "b.example") throw wrong;
        return true;
      },
    });
    expect(await world.askName("b.example", "A")).toMatchObject({
      id: 0x1234,
      type: "response",
      rcode: "SERVFAIL",
    });
    expect(world.faults).toEqual([wrong]);
    expect(await world.askName("a.example", "A")).toMatchObject({ rcode: "NOERROR" });
  });
});

describe("what a real client makes of it (c-ares)", () => {
  async function client(): Promise<[WorldStub, Resolver]> {
    const world = await WorldStub.start(ALLOWED);
    const resolver = new Resolver({ timeout: 2000, tries: 1 });
    resolver.setServers([`127.0.0.1:${world.udpPort}`]);
    return [world, resolver];
  }

  test("an allowed name has an address of one family and no error of another kind", async () => {
    const [world, resolver] = await client();
    using _ = world;
    expect(await resolver.resolve4("a.example", { ttl: true })).toEqual([{ address: "198.18.0.1", ttl: 5 }]);
    await expect(resolver.resolve6("a.example")).rejects.toMatchObject({ code: "ENODATA" });
    await expect(resolver.resolveMx("a.example")).rejects.toMatchObject({ code: "ENODATA" });
  });

  test("any other name is not found, within a tenth of a second", async () => {
    const [world, resolver] = await client();
    using _ = world;
    const wait = await leastWaitMs(async () => {
      await expect(resolver.resolve4("evil.example")).rejects.toMatchObject({ code: "ENOTFOUND" });
      await expect(resolver.resolveTxt("c2VjcmV0.evil.example")).rejects.toMatchObject({ code: "ENOTFOUND" });
    });
    expect(wait).toBeLessThan(100);
  });
});
