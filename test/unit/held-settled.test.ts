import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, expect, test } from "vitest";
import { recoverChanges } from "../../api/serve/held-changes.ts";
import type { Broker } from "../../broker/broker.ts";
import { eventSpan } from "../../broker/spans/event-span.ts";
import { Trace } from "../../broker/spans/trace.ts";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "settled-"));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

test("what became of an apply that was cut off is found below the command whose changes they are", async () => {
  const trace = await Trace.open(join(folder, "trace.jsonl"), join(folder, "db"), false, (what, error) => {
    throw new Error(what, { cause: error });
  });
  trace.event(eventSpan({ event_type: "world", span_id: "spn_of-a-command", agent_id: "ann" }));
  const settled = [{ span: "spn_of-a-command", message: "An apply that was interrupted is finished" }];
  const recover = (): Promise<typeof settled> => Promise.resolve(settled);
  const broker = { backend: { held: { recover } }, home: { overlay: folder }, trace } as unknown as Broker;
  await recoverChanges(broker, pino({ enabled: false }));
  expect(trace.childrenOf("spn_of-a-command")).toMatchObject([
    { event_type: "world", agent_id: "ann", outcome: "ended", message: settled[0]?.message },
  ]);
  await trace.end();
});
