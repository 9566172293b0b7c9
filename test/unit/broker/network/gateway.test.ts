import { expect, test } from "vitest";
import { CommandNetwork } from "../../../../broker/network/command-network.ts";
import { mostConnections } from "../../../../broker/network/gateway.ts";
import type { SpanRecord } from "../../../../broker/spans/trace.ts";
import { Violations } from "../../../../broker/spans/violations.ts";
import type { WorldViolation } from "../../../../world/backend.ts";

const commandWith = (onViolation: (violation: WorldViolation) => void): CommandNetwork =>
  new CommandNetwork({} as SpanRecord, onViolation, () => false);

const refusal = (name: string): WorldViolation => ({ kind: "name", subject: name, message: `no ${name}` });

test("a command that is refused without end has a thousand lines and the number of the rest", () => {
  const lines: WorldViolation[] = [];
  const violations = new Violations((violation) => lines.push(violation));
  const command = commandWith((violation) => violations.add(violation));
  for (let index = 0; index < 5000; index++) command.refuse(refusal(`${index}.evil.example`));
  violations.finish();
  expect(lines).toHaveLength(1001);
  expect(lines.at(-1)).toMatchObject({ kind: "name", subject: "4000 more" });
  expect(command.refused).toHaveLength(1000);
});

test("what is refused again and again is told once", () => {
  const lines: WorldViolation[] = [];
  const command = commandWith((violation) => lines.push(violation));
  for (let index = 0; index < 50; index++) command.refuse(refusal("evil.example"));
  expect(lines).toEqual([refusal("evil.example")]);
  expect(command.refused).toEqual(["no evil.example"]);
});

test("what a connection carried counts while it is open and when it has ended, and then it is let go", () => {
  const command = commandWith(() => {});
  let asked = 0;
  let egress = 0;
  const begin = (): (() => void) =>
    command.add("net:a.example:443", {
      get traffic() {
        asked += 1;
        return { egress, ingress: 1 };
      },
      sent: Promise.resolve(),
    });
  const ends = [begin(), begin()];
  egress = 10;
  expect(command.traffic).toEqual({ egress: 20, ingress: 2 });
  for (const end of [...ends, ...ends]) end();
  const before = asked;
  egress = 500;
  expect(command.traffic).toEqual({ egress: 20, ingress: 2 });
  expect(asked).toBe(before);
  expect(command.scopes).toEqual(["net:a.example:443"]);
});

test("what was not reached is told once for each place, with the newest reason", () => {
  const command = commandWith(() => {});
  for (const why of ["ENOTFOUND", "ETIMEOUT"]) command.fail("a.example:443", "a.example", why);
  for (let port = 1; port <= 5000; port++) command.fail(`b.example:${port}`, "b.example", "ECONNREFUSED");
  expect(command.failed()[0]).toBe("ETIMEOUT");
  expect(command.failed()).toHaveLength(1000);
  expect(command.refused).toEqual([]);
});

const limits = (soft: string): string =>
  `Limit                     Soft Limit           Hard Limit           Units\nMax processes             10                   10                   processes\nMax open files            ${soft.padEnd(20)} 1048576              files\n`;

test("half of the broker's descriptors are for connections, two for each", () => {
  expect(mostConnections(limits("1024"))).toBe(256);
  expect(mostConnections(limits("20000"))).toBe(5000);
  expect(mostConnections(limits("1048576"))).toBe(16_384);
  expect(mostConnections(limits("unlimited"))).toBe(16_384);
  expect(mostConnections()).toBeGreaterThan(0);
});
