import { chownSync, existsSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../support/broker/broker.ts";
import { actorsWith } from "../support/run/needs.ts";
import { NetworkPlace, networkPolicy } from "../support/network/place.ts";
import { ZONE } from "../support/network/zone.ts";

const NAME = "registry.example.test";
const REFUSED = ["stranger.example.test", "203.0.113.10", "collector.evil.test"];
const EDITS = 50;

/** Dials all the time until the file `stop` is there: prints for each name how often it was let through, and refused. */
const LOOP = `
import os, socket, sys, time
through = {name: [0, 0] for name in sys.argv[1:]}
open("looping", "w").close()
while not os.path.exists("stop"):
    for name, count in through.items():
        try:
            with socket.create_connection((name, 80), 3) as s:
                s.settimeout(3)
                s.sendall(b"GET / HTTP/1.1\\r\\nHost: " + name.encode() + b"\\r\\nConnection: close\\r\\n\\r\\n")
                count[0 if s.recv(1) else 1] += 1
        except OSError: count[1] += 1
    time.sleep(0.005)
for name, count in through.items(): print(name, *count)
`;

/** Holds a connection and echoes over it each 50 ms, until it is cut or the file `stop` is there. */
const HOLD = `
import os, socket, sys, time
s = socket.create_connection((sys.argv[1], 22), 3)
s.settimeout(3)
s.recv(100)
open("held-" + sys.argv[1], "w").close()
came = "held"
try:
    while not os.path.exists("stop"):
        s.sendall(b"x")
        if not s.recv(1): came = "cut"; break
        time.sleep(0.05)
except OSError: came = "cut"
print(sys.argv[1], came, flush=True)
`;

/** From inside, whatever could open a way: the firewall, routes, interfaces, and the sockets that speak of them. */
const TAMPERING = `
nft flush ruleset; nft delete table inet substrate; nft list ruleset; iptables -F; ip6tables -F
ip link add x type dummy; ip link set lo down; ip addr add 203.0.113.10/32 dev lo
ip route add default dev lo; ip route del local 198.18.0.0/15 table local; ip route flush table local
unshare -r nft flush ruleset; unshare -rn true && echo namespaces
nsenter -t 1 -n true && echo entered
echo 1 > /proc/sys/net/ipv4/ip_forward && echo forward
echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet && echo localnet
python3 -c '
import socket
for protocol in (12, 6, 0):
    try:
        s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
        s.bind((0, 0))
        # NFT_MSG_DELTABLE of all tables, in a batch; RTM_NEWROUTE for protocol 0.
        kind = (10 << 8) | 2 if protocol == 12 else 24
        s.send((20).to_bytes(4, "little") + kind.to_bytes(2, "little") + (5).to_bytes(2, "little") + bytes(12))
    except OSError: pass
'
`;

describe.each(actorsWith("python3", "nft"))("what a policy says of the network, as $kind", (actor) => {
  let place: NetworkPlace;
  beforeAll(async () => {
    place = await NetworkPlace.open(actor, { default: networkPolicy([NAME]) });
    for (const [name, text] of Object.entries({ "loop.py": LOOP, "hold.py": HOLD, "tamper.sh": TAMPERING }))
      place.broker.write(join(place.broker.project, name), text);
  });
  afterAll(() => place.close());

  /** As an editor saves: at no moment half of it. */
  function edit(text: string): void {
    const path = join(place.broker.home, "policies/default.yaml");
    writeFileSync(`${path}.new`, text);
    chownSync(`${path}.new`, actor.uid, actor.gid);
    renameSync(`${path}.new`, path);
  }

  test("is nothing when the list is empty or absent: no name, no address, no question", async () => {
    const lists = ["net: { allowed: [], dns: { servers: ['203.0.113.53:53'] } }", "net: {}", ""];
    for (const net of lists) {
      const other = await NetworkPlace.in(place.internet, actor, {
        default: `id: default\nname: None\nmode: enforce\n${net}\n`,
      });
      try {
        const { dialled, seen } = await other.dial(
          [NAME, ...REFUSED, "2001:db8::12"].map((name) => `${name} 80`),
        );
        for (const { came, ms } of dialled) {
          expect(came).not.toBe("connected");
          expect(ms).toBeLessThan(2000);
        }
        expect(seen).toMatchObject({ connections: [], questions: [], datagrams: [] });
      } finally {
        await other.broker.stop();
      }
    }
    expect((await place.dial([`${NAME} 80`])).seen.connections).toHaveLength(1);
  });

  test("holds after everything that a command can try at firewall, routes and namespaces", async () => {
    const { result } = await place.during("sh tamper.sh 2>/dev/null");
    expect(result.stdout).toBe("");
    const { dialled, seen } = await place.dial([...REFUSED, NAME].map((name) => `${name} 80`));
    expect(dialled.map(({ came }) => came === "connected")).toEqual([...REFUSED.map(() => false), true]);
    expect(seen.connections.map(({ to }) => to.address)).toEqual(["203.0.113.10"]);
  });

  test(`has no moment of openness while it is edited ${EDITS} times, and no moment of none`, async () => {
    const looping = place.during(`rm -f stop looping; python3 loop.py ${[NAME, ...REFUSED].join(" ")}`);
    expect(await eventually(() => placeHas("looping"), 10_000)).toBe(true);
    for (let at = 0; at < EDITS; at += 1) {
      edit(networkPolicy(at % 2 === 0 ? [NAME, "files.example.test"] : [NAME]));
      await place.broker.run("sleep 0.02");
    }
    await place.broker.run("touch stop");
    const { result, seen } = await looping;
    const lines = result.stdout.trim().split("\n");
    const [allowed, ...refused] = lines.map((line) => line.split(" ").slice(1).map(Number));
    expect(refused, result.stderr).toHaveLength(REFUSED.length);
    for (const [through, not] of refused as [number, number][]) {
      expect(through).toBe(0);
      expect(not).toBeGreaterThan(EDITS / 2);
    }
    expect(allowed?.[0]).toBeGreaterThan(EDITS / 2);
    expect(allowed?.[1]).toBe(0);
    for (const { first } of seen.connections) expect(first).toContain(`Host: ${NAME}\r\n`);
    expect(new Set(seen.questions.map(({ name }) => name))).toEqual(new Set([NAME]));
    edit(networkPolicy([NAME]));
  });

  test("cuts what is open when its name goes, with the next command; what is still allowed stays", async () => {
    edit(networkPolicy([NAME, "files.example.test"]));
    const holding = place.run(
      `rm -f stop held-*; python3 hold.py ${NAME} & python3 hold.py files.example.test; touch cut; wait`,
    );
    expect(
      await eventually(() => placeHas(`held-${NAME}`) && placeHas("held-files.example.test"), 10_000),
    ).toBe(true);
    edit(networkPolicy([NAME]));
    await place.broker.run("true");
    expect(await eventually(() => placeHas("cut"), 5000)).toBe(true);
    await place.broker.run("sleep 0.3; touch stop");
    expect((await holding).stdout).toBe(`files.example.test cut\n${NAME} held\n`);
    expect((await place.dial(["files.example.test 80"])).seen.connections).toEqual([]);
  });

  test("cuts what is open when the range of its address goes, though its name stays; a public address stays", async () => {
    await place.internet.setZone({ ...ZONE, "office.example.test": { addresses: ["10.20.0.5"] } });
    const names = ["files.example.test", "office.example.test"];
    edit(networkPolicy([...names, "10.0.0.0/8"]));
    const holding = place.run(
      `rm -f stop cut held-*; python3 hold.py ${names.join(" & python3 hold.py ")}; touch cut; wait`,
    );
    expect(await eventually(() => names.every((name) => placeHas(`held-${name}`)), 10_000)).toBe(true);
    edit(networkPolicy(names));
    await place.broker.run("true");
    expect(await eventually(() => placeHas("cut"), 3000)).toBe(true);
    await place.broker.run("sleep 0.3; touch stop");
    expect((await holding).stdout).toBe("office.example.test cut\nfiles.example.test held\n");
    expect((await place.dial(["office.example.test 22"])).seen.connections).toEqual([]);
    edit(networkPolicy([NAME]));
  });

  test("may name as many ranges as a policy can have, also when some lie in others", async () => {
    const ranges = Array.from({ length: 4092 }, (_, at) => `203.${100 + (at >> 8)}.${at & 255}.111/32`);
    edit(networkPolicy([NAME, "203.100.0.0/16:8080", "203.115.0.0/24", "203.115.0.111:22", ...ranges]));
    const targets = ["203.115.251.111 443", "203.115.0.7 80", "203.100.9.9 8080", "203.115.0.111 22"];
    const { dialled, seen } = await place.dial([
      `${NAME} 80`,
      ...targets,
      "203.115.251.110 443",
      "203.100.9.9 80",
    ]);
    const expected = ["203.0.113.10 80", ...targets];
    expect(seen.connections.map(({ to }) => `${to.address} ${to.port}`)).toEqual(expected);
    expect(dialled.slice(-2).map(({ came }) => came)).toEqual(["ECONNREFUSED", "ECONNREFUSED"]);
    const { isolation } = await place.run("true");
    expect(isolation.net).toBe("on");
    edit(networkPolicy([NAME]));
  });

  test("in observe mode stops no name and no address outside, and internal ones all the same", async () => {
    const other = await NetworkPlace.in(place.internet, actor, {
      default: networkPolicy([NAME], { mode: "observe" }),
    });
    try {
      await place.internet.setZone({
        ...ZONE,
        "inside.evil.test": { addresses: ["169.254.169.254"] },
      });
      const targets = [NAME, "collector.evil.test", "inside.evil.test", "127.0.0.1"].map(
        (name) => `${name} 80`,
      );
      const { dialled, seen } = await other.dial(targets);
      expect(dialled.map(({ came }) => came === "connected")).toEqual([true, true, false, false]);
      expect(seen.connections.map(({ to }) => to.address)).toEqual(["203.0.113.10", "203.0.113.66"]);
    } finally {
      await other.broker.stop();
    }
  });

  test("of a profile narrows: both must allow", async () => {
    const profile = `id: narrow\nname: Narrow\nmode: enforce\nselectable: true\nnet: { allowed: ["files.example.test"] }\n`;
    const other = await NetworkPlace.in(place.internet, actor, {
      default: networkPolicy([NAME, "files.example.test"]),
      narrow: profile,
    });
    try {
      const cmd = `python3 dial.py ${NAME} 80 files.example.test 80`;
      const narrowed = await place.internet.during(() => other.broker.run({ cmd, profile: "narrow" }));
      expect(narrowed.seen.connections.map(({ to }) => to.port)).toEqual([80]);
      expect(narrowed.result.stdout).toMatch(/^NXDOMAIN \d+\nconnected \d+\n$/);
      expect((await other.during(cmd)).seen.connections).toHaveLength(2);
    } finally {
      await other.broker.stop();
    }
  });

  function placeHas(name: string): boolean {
    return existsSync(join(place.broker.project, name));
  }
});
