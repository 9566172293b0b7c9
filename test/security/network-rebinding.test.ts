import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actorsWith } from "../support/run/needs.ts";
import type { Zone } from "../support/network/messages.ts";
import { NetworkPlace, networkPolicy } from "../support/network/place.ts";
import { OWN_ADDRESS, ZONE } from "../support/network/zone.ts";

const PUBLIC = "203.0.113.20";

/** What a name on the internet has no business to be: one of each kind, in each of its spellings. */
const INTERNAL = [
  "127.0.0.1",
  "127.255.255.254",
  "0.0.0.0",
  "0.1.2.3",
  "10.0.0.5",
  "172.16.0.1",
  "172.31.255.254",
  "192.168.1.1",
  "100.64.0.1",
  "169.254.169.254",
  "224.0.0.1",
  "255.255.255.255",
  "::",
  "::1",
  "::ffff:127.0.0.1",
  "::ffff:10.0.0.5",
  "::ffff:169.254.169.254",
  "::127.0.0.1",
  "64:ff9b::7f00:1",
  "64:ff9b::a9fe:a9fe",
  "2002:7f00:1::1",
  "fc00::1",
  "fd00:ec2::254",
  "fe80::1",
  "fec0::1",
  "ff02::1",
];

const nameOf = (index: number): string => `internal-${index}.example.test`;

const NAMES: Zone = {
  ...ZONE,
  ...Object.fromEntries(INTERNAL.map((address, index) => [nameOf(index), { addresses: [address] }])),
  "mixed.example.test": { addresses: ["127.0.0.1", "10.0.0.5", PUBLIC, "::1"] },
  "own.example.test": { addresses: [OWN_ADDRESS] },
  "neighbour.example.test": { addresses: ["20.30.40.51"] },
  "led.example.test": { alias: nameOf(0) },
  "office.example.test": { addresses: ["10.20.0.5"] },
  "other-office.example.test": { addresses: ["10.21.0.5"] },
};

/** Connects again and again for some seconds; prints how often it was let through. */
const AGAIN = `
import socket, sys, time
through = 0
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    try:
        with socket.create_connection((sys.argv[1], 80), 3) as s:
            s.settimeout(3)
            s.sendall(b"GET / HTTP/1.1\\r\\nHost: " + sys.argv[1].encode() + b"\\r\\nConnection: close\\r\\n\\r\\n")
            if s.recv(1): through += 1
    except OSError: pass
    time.sleep(0.1)
print(through)
`;

describe.each(actorsWith("python3", "nft"))("names that lead inside, as $kind", (actor) => {
  let place: NetworkPlace;
  beforeAll(async () => {
    place = await NetworkPlace.open(actor, { default: networkPolicy(["*.example.test"]) }, NAMES);
    place.broker.write(`${place.broker.project}/again.py`, AGAIN);
  });
  afterAll(() => place.close());

  test("are refused at once, and no service of the host, the network or the cloud sees anybody", async () => {
    const { dialled, seen } = await place.dial(INTERNAL.map((_, index) => `${nameOf(index)} 80`));
    expect(seen.connections).toEqual([]);
    for (const [index, { came, ms }] of dialled.entries()) {
      expect(came, INTERNAL[index]).not.toBe("connected");
      expect(ms, INTERNAL[index]).toBeLessThan(2000);
    }
    expect((await place.dial(["led.example.test 80"])).seen.connections).toEqual([]);
    expect((await place.dial(["files.example.test 80"])).dialled[0]?.came).toBe("connected");
  });

  test("are refused for the host's own public address too, and not for its neighbour's", async () => {
    const { dialled, seen } = await place.dial([
      "own.example.test 5432",
      "own.example.test 80",
      "neighbour.example.test 80",
    ]);
    expect(dialled.map(({ came }) => came === "connected")).toEqual([false, false, true]);
    expect(seen.connections.map(({ to }) => to.address)).toEqual(["20.30.40.51"]);
  });

  test("beside public addresses are passed over", async () => {
    const { dialled, seen } = await place.dial(Array.from({ length: 5 }, () => "mixed.example.test 80"));
    expect(dialled.map(({ came }) => came)).toEqual(dialled.map(() => "connected"));
    expect(new Set(seen.connections.map(({ to }) => to.address))).toEqual(new Set([PUBLIC]));
  });

  test.each(["127.0.0.1", "169.254.169.254", "10.0.0.5", "::1", "::ffff:127.0.0.1"])(
    "after they led outside (%s) are refused from then on, at the address that is dialled",
    async (internal) => {
      await place.internet.setZone({
        ...NAMES,
        "rebinding.example.test": { turns: [[PUBLIC], [internal]], then: "stay", ttl: 0 },
      });
      const { result, seen } = await place.during("python3 again.py rebinding.example.test 2.5");
      expect(Number(result.stdout), result.stderr).toBeGreaterThan(0);
      expect(new Set(seen.connections.map(({ to }) => to.address))).toEqual(new Set([PUBLIC]));
      expect(seen.questions.filter(({ type }) => type === "A").length).toBeGreaterThan(1);
      // The name is the same, and what was learned of it before is older than it may be: nobody is reached any more.
      await sleep(1100);
      const later = await place.dial(["rebinding.example.test 80"]);
      expect(later.seen.connections).toEqual([]);
    },
  );

  test("are no obstacle to a name that moves: each address it takes is reached", async () => {
    const { result, seen } = await place.during("python3 again.py rotating.example.test 3.5");
    expect(Number(result.stdout)).toBe(seen.connections.length);
    expect(Number(result.stdout)).toBeGreaterThan(5);
    expect(new Set(seen.connections.map(({ to }) => to.address)).size).toBeGreaterThan(1);
    const half = await place.dial(["half-dead.example.test 80", "half-dead.example.test 80"]);
    expect(half.dialled.map(({ came }) => came)).toEqual(["connected", "connected"]);
    const many = await place.dial(["many.example.test 80"]);
    expect(many.dialled.map(({ came }) => came)).toEqual(["connected"]);
    const six = await place.dial(["six.example.test 80"]);
    expect(six.dialled.map(({ came }) => came)).toEqual(["connected"]);
    expect(six.seen.connections[0]?.to.address).toBe("2001:db8::12");
  });

  test("are reached when a CIDR entry covers the address, and others are not", async () => {
    const other = await NetworkPlace.in(place.internet, actor, {
      default: networkPolicy(["*.example.test", "10.20.0.0/16"]),
    });
    try {
      const targets = [
        "office.example.test 80",
        "other-office.example.test 80",
        "10.20.9.9 80",
        "10.21.0.5 80",
      ];
      const { dialled, seen } = await other.dial(targets);
      expect(dialled.map(({ came }) => came === "connected")).toEqual([true, false, true, false]);
      expect(seen.connections.map(({ to }) => to.address)).toEqual(["10.20.0.5", "10.20.9.9"]);
    } finally {
      await other.broker.stop();
    }
  });
});
