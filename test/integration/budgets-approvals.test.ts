import { randomUUID } from "node:crypto";
import { statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { Person } from "../support/broker/approvals.ts";
import { giving, stateOf, withBroker } from "../support/broker/budgets.ts";

const ASKING = 'commands: { ask: ["tee *"] }\n';

describe.each(actors())("budgets, keys and a person who is asked, as $kind", (actor) => {
  test("nobody is asked about a command that no budget reaches for, and a yes is not lost on it", async () => {
    await withBroker(actor, giving("{ default: { max_execs: 1 } }", ASKING), async (broker) => {
      const person = new Person(broker);
      await person.approve({ cmd: "tee once" }, "once");
      await broker.run("true");
      expect(await person.told({ cmd: "tee once" })).toMatchObject({ status: 429 });
      expect(await person.told({ cmd: "tee other" })).toMatchObject({ status: 429 });
      expect((await person.list()).approvals).toEqual([]);
      await broker.operator("DELETE", "/v1/budgets/test");
      expect(await person.told({ cmd: "tee once" })).toMatchObject({ status: 200 });
    });
  });

  test("what waits for a person is held, and given back when the answer is no", async () => {
    await withBroker(actor, giving("{ default: { max_execs: 1 } }", ASKING), async (broker) => {
      const person = new Person(broker);
      const waiting = person.told({ cmd: "tee held", approval_wait_ms: 30_000 });
      const { approval_id: id } = await person.waitedFor();
      expect(await stateOf(broker, "test", "max_execs")).toMatchObject({ used: 0, reserved: 1 });
      expect(await person.told({ cmd: "true" })).toMatchObject({ status: 429 });
      await person.answer(id, "deny");
      expect(await waiting).toMatchObject({ code: "approval_denied" });
      expect(await stateOf(broker, "test", "max_execs")).toMatchObject({ used: 0, reserved: 0 });
      expect(await person.told({ cmd: "true" })).toMatchObject({ status: 200 });
    });
  });

  test("calls with one key wait for one answer and are one run; a refused question keeps no key", async () => {
    await withBroker(actor, giving("{ default: { max_execs: 5 } }", ASKING), async (broker) => {
      const person = new Person(broker);
      const body = { cmd: "printf x | tee -a runs", idempotency_key: randomUUID() };
      expect(await person.told(body)).toMatchObject({ code: "approval_required" });
      const waiting = { ...body, approval_wait_ms: 30_000 };
      const calls = Array.from({ length: 4 }, () => person.told(waiting));
      const { approval_id: id } = await person.waitedFor();
      await person.answer(id, "once");
      for (const told of await Promise.all(calls)) expect(told).toMatchObject({ status: 200, stdout: "x" });
      expect(await person.told(waiting)).toMatchObject({ status: 200, stdout: "x" });
      expect(statSync(join(broker.project, "runs")).size).toBe(1);
      expect(await stateOf(broker, "test", "max_execs")).toMatchObject({ used: 1, reserved: 0 });
    });
  });
});
