import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type PolicyNet,
  type PresetName,
  presetsIn,
  readNet,
} from "../../../../broker/network/names/entries.ts";
import { type ExpandedPresets, type NetRules, netRules } from "../../../../broker/network/rules.ts";
import { leastCpuMs } from "../../../support/processes/cost.ts";

// Rules from entries as they are written; line 10 of `p.yaml` has the first.

const NO_PRESETS: ExpandedPresets = new Map();

describe("a name", () => {
  test.each([
    ["allowed.com", "allowed.com", true],
    ["allowed.com", "ALLOWED.com.", true],
    ["allowed.com", "evilallowed.com", false],
    ["allowed.com", "x.allowed.com", false],
    ["allowed.com", "allowed.com.evil.net", false],
    ["allowed.com", "allowed.co", false],
    ["allowed.com", "аllowed.com", false],
    ["allowed.com", "allowed.com\0.evil.net", false],
    ["*.allowed.com", "x.allowed.com", true],
    ["*.allowed.com", "y.x.allowed.com", true],
    ["*.allowed.com", "X.Allowed.COM.", true],
    ["*.allowed.com", "allowed.com", false],
    ["*.allowed.com", "xallowed.com", false],
    ["*.allowed.com", "x.evilallowed.com", false],
    ["*.allowed.com", "..allowed.com", false],
    ["*.com", "allowed.com", true],
    ["Bücher.example", "xn--bcher-kva.example", true],
    ["*.bücher.example.", "a.BÜCHER.example", true],
    ["127.0.0.1", "127.1", false],
    ["0.0.0.0/0", "allowed.com", false],
  ])("with %s, %j is %s", (entry, name, allowed) => {
    expect(rulesOf([entry]).name(name).allowed).toBe(allowed);
    expect(rulesOf([entry]).connection(name, 443).allowed).toBe(allowed);
  });

  test("without a port has 80, 443 and 22, with one has that alone, with both all four", () => {
    const rules = rulesOf(["a.example", "b.example:8080", "c.example", "c.example:8080", "*.b.example:9"]);
    const open = (name: string) =>
      [22, 80, 443, 8080, 9].filter((port) => rules.connection(name, port).allowed);
    expect(open("a.example")).toEqual([22, 80, 443]);
    expect(open("b.example")).toEqual([8080]);
    expect(open("c.example")).toEqual([22, 80, 443, 8080]);
    expect(open("x.b.example")).toEqual([9]);
    expect(rules.portsOf("C.example.")).toEqual([22, 80, 443, 8080]);
    expect(rules.portsOf("d.example")).toEqual([]);
    expect(rules.ports).toEqual([9, 22, 80, 443, 8080]);
  });

  test("is answered with the entry that allowed it and its line, or with the line of the list", () => {
    const rules = rulesOf(["*.example", "a.example:1"]);
    expect(rules.connection("a.example", 443)).toEqual({
      allowed: true,
      entry: "*.example",
      source: "p.yaml:10",
    });
    expect(rules.connection("a.example", 1)).toEqual({
      allowed: true,
      entry: "a.example:1",
      source: "p.yaml:11",
    });
    expect(rules.name("b.net")).toEqual({ allowed: false, entry: null, source: "p.yaml:9" });
  });

  test("host.internal is allowed by an entry of just that name and port, and by no wildcard or preset", () => {
    const presets: ExpandedPresets = new Map([
      ["@git" as const, { entries: [{ host: "host.internal", port: 5432 }] }],
    ]);
    expect(rulesOf(["host.internal:5432"]).connection("host.internal", 5432).allowed).toBe(true);
    expect(rulesOf(["host.internal:5432"]).connection("host.internal", 443).allowed).toBe(false);
    expect(rulesOf(["*.internal:5432", "@git"], presets).name("host.internal").allowed).toBe(false);
    expect(rulesOf(["*.internal"]).name("x.host.internal").allowed).toBe(true);
  });
});

describe("an address", () => {
  test.each([
    ["10.0.0.0/8", "10.255.255.255", true],
    ["10.0.0.0/8", "11.0.0.0", false],
    ["10.1.2.3/8", "10.0.0.1", true],
    ["10.1.2.3", "10.1.2.3", true],
    ["10.1.2.3", "10.1.2.4", false],
    ["10.0.0.0/8", "::ffff:10.0.0.1", true],
    ["::ffff:10.0.0.0/104", "10.0.0.1", true],
    ["0.0.0.0/0", "255.255.255.255", true],
    ["0.0.0.0/0", "fd00::1", false],
    ["::/0", "fd00::1", true],
    ["::/0", "10.0.0.1", false],
    ["[fd00::]/8:443", "fdff::1", true],
    ["fd00::/8", "fe00::1", false],
    ["fd00::1", "fd00:0:0::1", true],
    ["10.0.0.0/8", "10.0.0.1.evil.net", false],
    ["10.0.0.0/8", "0x0a000001", false],
    ["10.0.0.0/8", "010.0.0.1", false],
    ["fe80::/10", "fe80::1%eth0", false],
    ["allowed.com", "10.0.0.1", false],
  ])("with %s, %s is %s", (entry, address, allowed) => {
    expect(rulesOf([entry]).address(address, 443).allowed).toBe(allowed);
    expect(rulesOf([entry]).covers(address, 443)).toBe(allowed);
  });

  test("is dialled on the entry's ports, and covered for names on any unless the entry names some", () => {
    const rules = rulesOf(["10.0.0.0/8", "192.168.0.0/16:5432"]);
    expect(rules.address("10.0.0.1", 5432).allowed).toBe(false);
    expect(rules.covers("10.0.0.1", 5432)).toBe(true);
    expect(rules.address("192.168.1.1", 5432).allowed).toBe(true);
    expect(rules.address("192.168.1.1", 443).allowed).toBe(false);
    expect(rules.covers("192.168.1.1", 443)).toBe(false);
    expect(rules.ranges).toEqual([
      { cidr: "10.0.0.0/8", ports: [22, 80, 443] },
      { cidr: "192.168.0.0/16", ports: [5432] },
    ]);
    expect(rulesOf(["fd00::/8"]).isEmpty).toBe(true);
  });
});

describe("a preset", () => {
  test("stands for the hosts and ports it was expanded to, and nothing else of them", () => {
    const presets: ExpandedPresets = new Map([
      [
        "@npm" as PresetName,
        {
          entries: [
            { host: "Registry.example", port: 8443 },
            { host: "10.1.1.1", port: 81 },
          ],
        },
      ],
    ]);
    const rules = rulesOf(["@npm", "@pip"], presets);
    expect(rules.connection("registry.example", 8443)).toEqual({
      allowed: true,
      entry: "@npm",
      source: "p.yaml:10",
    });
    expect(rules.connection("registry.example", 443).allowed).toBe(false);
    expect(rules.connection("x.registry.example", 8443).allowed).toBe(false);
    expect(rules.address("10.1.1.1", 81).allowed).toBe(true);
    expect(rules.address("10.1.1.1", 80).allowed).toBe(false);
    expect(rulesOf(["@pip"], presets).isEmpty).toBe(true);
  });

  test("is asked for once, however often it is written", () => {
    expect(presetsIn(listOf(["@git", "a.example", "@npm", "@git"]))).toEqual(["@npm", "@git"]);
  });
});

test("an empty list allows nothing, and neither do no policies", () => {
  for (const rules of [rulesOf([]), netRules([])]) {
    expect(rules.isEmpty).toBe(true);
    expect([rules.name("a.example").allowed, rules.address("10.0.0.1", 80).allowed]).toEqual([false, false]);
    expect([rules.ports, rules.ranges, rules.covers("10.0.0.1", 80)]).toEqual([[], [], false]);
  }
});

describe("two policies", () => {
  test("allow what both allow, and the answer names the one that refuses", () => {
    const rules = both(["*.example", "10.0.0.0/8"], ["a.example:443", "10.1.0.0/16:443", "b.net:443"]);
    expect(rules.connection("a.example", 443).allowed).toBe(true);
    expect(rules.connection("a.example", 80)).toEqual({
      allowed: false,
      entry: null,
      source: "other.yaml:9",
    });
    expect(rules.name("b.net")).toEqual({ allowed: false, entry: null, source: "one.yaml:9" });
    expect(rules.ports).toEqual([443]);
    expect(rules.ranges).toEqual([{ cidr: "10.1.0.0/16", ports: [443] }]);
    expect(rules.covers("10.1.0.1", 443)).toBe(true);
    expect(rules.covers("10.2.0.1", 443)).toBe(false);
  });

  test("with as many ranges as both may have are joined at once, and hold what lies in both", () => {
    const some = Array.from({ length: 4095 }, (_, at) => `20.${at >> 8}.${at & 255}.0/24:443`);
    const join = () => both([...some, "30.0.0.1:443"], [...some.toReversed(), "30.0.0.0/8:443"]);
    const { ranges } = join();
    expect(leastCpuMs(join)).toBeLessThan(1500);
    const each = some.map((cidr) => cidr.replace(":443", ""));
    expect(ranges.map(({ cidr }) => cidr)).toEqual([...each, "30.0.0.1/32"]);
  });

  test("do not answer for a name that each allows on ports of its own", () => {
    expect(both(["a.example:1"], ["a.example:2"]).name("a.example").allowed).toBe(false);
    expect(both(["a.example:1"], ["a.example:2"]).isEmpty).toBe(true);
  });
});

const label = fc.constantFrom("a", "b", "evil", "xn--bcher-kva");
const name = fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => labels.join("."));
const port = fc.constantFrom(22, 80, 443, 8080);
const address = fc
  .tuple(fc.constantFrom(10, 172), fc.nat(3), fc.nat(3))
  .map(([a, b, c]) => `${a}.${b}.0.${c}`);
const entry = fc.oneof(
  name,
  name.map((text) => `*.${text}`),
  fc.tuple(name, port).map(([text, at]) => `${text}:${at}`),
  fc.tuple(address, fc.integer({ min: 0, max: 32 })).map(([text, bits]) => `${text}/${bits}`),
  fc.tuple(address, port).map(([text, at]) => `${text}/16:${at}`),
);
const list = fc.array(entry, { maxLength: 6 });

type Verdicts = readonly [boolean, boolean, boolean, boolean];

function verdicts(rules: NetRules, [host, ip, at]: readonly [string, string, number]): Verdicts {
  return [
    rules.name(host).allowed,
    rules.connection(host, at).allowed,
    rules.address(ip, at).allowed,
    rules.covers(ip, at),
  ];
}

function atMost(less: Verdicts, more: Verdicts): void {
  expect(less.map((one, index) => one && more[index] === false)).toEqual([false, false, false, false]);
}

describe("whatever the lists say,", () => {
  const asked = fc.tuple(name, address, port);

  test("one more entry takes nothing away", () => {
    fc.assert(
      fc.property(list, entry, fc.nat(6), asked, (entries, added, index, question) => {
        const more = [...entries.slice(0, index), added, ...entries.slice(index)];
        atMost(verdicts(rulesOf(entries), question), verdicts(rulesOf(more), question));
      }),
    );
  });

  test("two policies allow no more than each, and a connection exactly where each does", () => {
    fc.assert(
      fc.property(list, list, asked, (one, other, question) => {
        const joint = verdicts(both(one, other), question);
        const each = [verdicts(rulesOf(one), question), verdicts(rulesOf(other), question)] as const;
        for (const single of each) atMost(joint, single);
        expect(joint.slice(1)).toEqual(each[0].slice(1).map((allowed, at) => allowed && each[1][at + 1]));
      }),
    );
  });

  test("what is allowed can be captured: its port is among the ports, its address in a range", () => {
    fc.assert(
      fc.property(list, list, asked, (one, other, [host, ip, at]) => {
        for (const rules of [rulesOf(one), both(one, other)]) {
          if (rules.connection(host, at).allowed) expect(rules.ports).toContain(at);
          const ranges = rules.ranges.map(({ cidr, ports }) => ports.map((each) => `${cidr}:${each}`)).flat();
          expect(rulesOf(ranges).address(ip, at).allowed).toBe(rules.address(ip, at).allowed);
        }
      }),
    );
  });
});

function listOf(allowed: readonly string[], file = "p.yaml"): PolicyNet {
  const at = (path: readonly (string | number)[]) => ({ file, line: 10 + Number(path[2] ?? -1), column: 1 });
  const { net, problems } = readNet({ id: "p", name: "P", net: { allowed: [...allowed] } }, { at });
  if (problems[0] !== undefined) throw new Error(problems[0].message);
  return net;
}

function rulesOf(allowed: readonly string[], presets = NO_PRESETS): NetRules {
  return netRules([{ net: listOf(allowed), presets }]);
}

function both(one: readonly string[], other: readonly string[]): NetRules {
  return netRules([
    { net: listOf(one, "one.yaml"), presets: NO_PRESETS },
    { net: listOf(other, "other.yaml"), presets: NO_PRESETS },
  ]);
}
