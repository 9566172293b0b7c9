import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { file, policyOf, started } from "../../../support/policy/starts.ts";
import { Gate } from "../../../support/policy/gate.ts";

const DENIES = { denied: [{ pattern: "sudo *", reason: "Nobody is root here" }] };
const long = (number: number) => file("/usr/bin/sudo", [`${number}`, ..."x ".repeat(6000).split(" ")]);

/** Turns of the event loop that others have until all are done. */
async function turnsDuring(done: Promise<unknown>): Promise<number> {
  let [turns, isDone] = [0, false];
  const ended = done.then(() => (isDone = true));
  for (; !isDone; turns += 1) await turn();
  await ended;
  return turns;
}

describe("starts with long words", () => {
  test("of many processes at once are judged in a turn of the event loop each", async () => {
    const gate = new Gate(policyOf(DENIES));
    const answers = Array.from({ length: 12 }, (_, pid) => gate.starts({ ...started(long(pid)), pid }));
    expect(await turnsDuring(Promise.all(answers))).toBeGreaterThanOrEqual(12);
    expect(await Promise.all(answers)).toEqual(answers.map(() => false));
    expect(gate.spans).toHaveLength(12);
  });

  test("of a process come before its later ones", async () => {
    const gate = new Gate(policyOf(DENIES, { mode: "observe" }));
    const of = (pid: number, words: readonly string[]) =>
      gate.starts({ ...started(file("/usr/bin/sudo", words)), pid });
    const all = [gate.starts({ ...started(long(7)), pid: 7 }), of(7, ["second"]), of(8, ["other"])];
    await Promise.all(all);
    const told = gate.spans.map(({ violation }) => (JSON.parse(violation?.subject ?? "[]") as string[])[1]);
    expect(told).toEqual(["other", "7", "second"]);
  });

  test("are judged when the command ends, and those beyond what may wait are counted where the policy only observes", async () => {
    const gate = new Gate(policyOf(DENIES, { mode: "observe" }));
    const answers = Array.from({ length: 70 }, (_, pid) => gate.starts({ ...started(long(pid)), pid }));
    await gate.gate.judged();
    expect(gate.spans).toHaveLength(64);
    gate.gate.finish();
    expect(gate.spans.at(-1)?.violation).toEqual({ kind: "program", subject: "6 not judged" });
    expect(await Promise.all(answers)).toEqual(answers.map(() => true));
  });

  test("of one process are bounded too where the policy only observes", async () => {
    const gate = new Gate(policyOf(DENIES, { mode: "observe" }));
    const answers = Array.from({ length: 70 }, (_, number) =>
      gate.starts({ ...started(long(number)), pid: 7 }),
    );
    await gate.gate.judged();
    await Promise.all(answers);
    expect(gate.spans).toHaveLength(64);
  });

  test("that are alike are judged once", async () => {
    const gate = new Gate(policyOf(DENIES));
    await gate.starts(long(1));
    const before = process.cpuUsage();
    for (let time = 0; time < 20; time += 1) expect(await gate.starts(long(1))).toBe(false);
    const alike = process.cpuUsage(before).user;
    const between = process.cpuUsage();
    for (let number = 2; number < 22; number += 1) await gate.starts(long(number));
    expect(alike).toBeLessThan(process.cpuUsage(between).user / 2);
  });
});
