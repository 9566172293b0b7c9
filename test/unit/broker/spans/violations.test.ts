import { expect, test } from "vitest";
import { Violations } from "../../../../broker/spans/violations.ts";
import type { WorldViolation } from "../../../../world/backend.ts";

const denied = (number: number): WorldViolation => ({
  kind: "denied_name",
  subject: `/projects/example/${number}/.env`,
  message: "It was taken out",
});
const limit: WorldViolation = { kind: "limit", subject: "pids", message: "It met its limit" };

function recorded(given: readonly WorldViolation[]): readonly WorldViolation[] {
  const lines: WorldViolation[] = [];
  const violations = new Violations((one) => lines.push(one));
  for (const one of given) violations.add(one);
  violations.finish();
  return lines;
}

test("each of a thousand violations has a line of its own, and no line counts none", () => {
  const given = Array.from({ length: 1000 }, (_, number) => denied(number));
  expect(recorded(given)).toEqual(given);
});

test("those beyond a thousand are counted in one line for each kind, and a limit always has its own", () => {
  const given = Array.from({ length: 1500 }, (_, number) => denied(number));
  const call: WorldViolation = { kind: "system_call", subject: "bpf", message: "It was let through" };
  const lines = recorded([...given, call, call, limit]);
  expect(lines.length).toBe(1003);
  expect(lines.slice(0, 1001)).toEqual([...given.slice(0, 1000), limit]);
  expect(lines.slice(1001)).toMatchObject([
    { kind: "denied_name", subject: "500 more" },
    { kind: "system_call", subject: "2 more" },
  ]);
});
