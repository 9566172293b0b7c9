import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { NetRules } from "../../../broker/network/rules.ts";
import { both, rulesOf } from "./lists.ts";

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
