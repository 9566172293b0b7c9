/** Whatever is told of programs, in whatever batches, and wherever it stops: what is recorded is a tree. */
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { ProgramRecorder } from "../../broker/programs/program-recorder.ts";
import { verifyTrace } from "../../broker/spans/verify.ts";
import type { ProgramEvent } from "../../world/model/programs.ts";
import { type Span, ended, record, refused, started, testTrace } from "../support/trace/traces.ts";

/** What happens next: who does it is chosen among those there are. */
const step = fc.record({
  kind: fc.constantFrom("start", "start", "refuse", "end", "replace"),
  who: fc.nat(),
  pause: fc.boolean(),
});

/** Some numbers are never told: the world had no room for them. Their children are. */
function eventsOf(steps: readonly { kind: string; who: number }[], isTold: (number: number) => boolean) {
  const begun: number[] = [];
  let running: number[] = [];
  return steps.map(({ kind, who }): ProgramEvent | undefined => {
    const one = running[who % Math.max(1, running.length)];
    const parent = begun[who % Math.max(1, begun.length)] ?? 0;
    if (kind === "refuse") return refused(parent, ["no"]);
    if ((kind === "end" || kind === "replace") && one !== undefined) {
      running = running.filter((other) => other !== one);
      return isTold(one) ? ended(one, kind === "end" ? { code: 0 } : { replaced: true }) : undefined;
    }
    const number = begun.length + 1;
    begun.push(number);
    running.push(number);
    return isTold(number) ? started(number, parent, ["p", String(number)]) : undefined;
  });
}

test("every program has a parent that stands before it, whatever ends are missing and wherever the broker stops", async () => {
  const property = fc.asyncProperty(
    fc.array(step, { maxLength: 60 }),
    fc.nat(7),
    fc.integer({ min: 1, max: 40 }),
    fc.boolean(),
    async (steps, untold, most, isKilled) => {
      const at = testTrace();
      try {
        const trace = await at.open();
        const command = record("spn_command");
        await trace.start(command);
        const limits = { programs: most, text: 10_000 };
        const programs = new ProgramRecorder({ trace, command, known: new Map(), limits });
        const events = eventsOf(steps, (number) => untold === 0 || number % (untold + 1) !== 0);
        let batch: ProgramEvent[] = [];
        for (const [index, event] of events.entries()) {
          if (event !== undefined) batch.push(event);
          if (steps[index]?.pause !== true) continue;
          programs.add(batch, 0);
          batch = [];
          if (index % 7 === 0) await programs.finish({ closed: new Promise(() => {}) }, true);
        }
        programs.add(batch, 0);
        if (!isKilled) await programs.finish({ closed: Promise.resolve() }, false);
        await trace.end();
        expectTree(at.path, isKilled);
        const next = await at.open();
        expect(
          next.list({ agent: undefined, session: undefined, before: undefined, limit: 99 }).spans,
        ).toHaveLength(1);
        await next.end();
        expectTree(at.path, false);
        expect(await verifyTrace(at.path, [next.head])).toMatchObject({ ok: true });
      } finally {
        at.remove();
      }
    },
  );
  await fc.assert(property, { numRuns: 60 });
}, 60_000);

function expectTree(path: string, mayRun: boolean): void {
  const spans = readFileSync(path, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Span);
  const seen = new Set<string | null>([]);
  const outcomes = new Map<string, Span["outcome"]>();
  for (const span of spans) {
    if (span.event_type === "exec") {
      expect(seen.has(span.parent_span), `${span.cmd} has no parent`).toBe(true);
      outcomes.set(span.span_id, span.outcome);
    }
    seen.add(span.span_id);
  }
  if (!mayRun) expect([...outcomes.values()]).not.toContain(null);
}
