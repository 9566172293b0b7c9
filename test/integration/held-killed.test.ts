import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ChangesReply } from "../../schemas/generated/types.ts";
import { actors } from "../support/users/users.ts";
import { eventually, TestBroker } from "../support/broker/broker.ts";
import { change, errorIn, isolated, isolating, treeOf } from "../support/held/changes.ts";

const ROUNDS = 5;
const FILES = 800;

/** Each round is a command, an apply, a kill and a start; the machine may be busy. */
const PATIENCE_MS = 240_000;

describe.each(actors())("a broker that is killed while it applies, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: isolating() } });
  });
  afterAll(() => broker.stop());

  test(
    "leaves all of the changes in the project or none, and the trace says that it was cut off",
    async () => {
      await broker.run(`mkdir base; for i in $(seq ${FILES}); do echo old > base/f$i; done`);
      let cut = 0;
      for (let round = 0; round < ROUNDS; round += 1) {
        const cmd = `for i in $(seq ${FILES}); do echo ${round} > base/f$i; done; mkdir new${round}; touch new${round}/x`;
        const { span_id: span } = await isolated(broker, cmd, { timeout_ms: 60_000 });
        const before = treeOf(broker.project);
        const answer = change(broker, "apply", span).then(
          ({ status }) => status,
          () => "cut off",
        );
        // From the first line on: it has begun, and nothing is touched yet.
        await eventually(
          () => broker.spans().some((line) => line.parent_span === span && line.held_changes !== undefined),
          20_000,
        );
        await sleep(round * 40 * Math.random());
        await broker.kill("SIGKILL");
        const told = await answer;
        broker = await broker.again();
        const after = treeOf(broker.project);
        const states = new Set(Object.values(after).filter((what) => what.startsWith("file 644 ")));
        const isApplied = after[`new${round}`] !== undefined;
        expect(Object.keys(after).filter((path) => path.includes(".substrate"))).toEqual([]);
        if (isApplied) expect([...states].sort()).toEqual(["file 644 ", `file 644 ${round}\n`]);
        else expect(after).toEqual(before);
        // What was acknowledged is there.
        if (told === 200) expect(isApplied).toBe(true);
        const below = broker.spans().filter(({ parent_span: parent }) => parent === span);
        const events = below.filter(({ held_changes: event }) => event !== undefined);
        if (told === "cut off" && events.length > 0 && events.every(({ outcome }) => outcome !== "ended")) {
          cut += 1;
          expect(events.at(-1)).toMatchObject({
            outcome: "lost",
            held_changes: { action: "apply", done: null },
          });
        }
        // And what is held still is whole as well.
        const rest = await change(broker, isApplied ? "apply" : "discard", span);
        if (isApplied) expect(errorIn(rest).code).toBe("not_found");
        else expect((rest.document as ChangesReply).done.length).toBe(FILES + 2);
      }
      expect((await broker.cli(["trace", "verify"])).code).toBe(0);
      expect(cut, "no apply was ever cut off: the kills come too late or too early").toBeGreaterThan(0);
    },
    PATIENCE_MS,
  );
});
