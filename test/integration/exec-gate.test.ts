import { afterEach, beforeEach, expect, test } from "vitest";
import type { Outcome } from "../../broker/model/outcome.ts";
import { replay } from "../../broker/journey/replay.ts";
import type { ProgramGate, ProgramStart } from "../../world/backend.ts";
import { GatedBroker, startOf } from "../support/broker/gated.ts";

const POLICY = (mode: string, asked = "id *"): string => `id: default
name: Gate
mode: ${mode}
approval: { preview: auto, timeout_secs: 60 }
commands:
  denied: [{ pattern: "env *", reason: "It is not for you" }]
  ask: ["${asked}"]
  isolated: ["ls *"]
  opaque: allow
`;

const ENV = startOf("/usr/bin/env", ["true"]);
const ID = startOf("/usr/bin/id", ["-u"]);
const LS = startOf("/usr/bin/ls", ["/"]);

let ground: GatedBroker;
beforeEach(async () => {
  ground = await GatedBroker.start(POLICY("enforce"));
});
afterEach(() => ground[Symbol.asyncDispose]());

/** What a gate says to each, and for how long it asked to be waited for. */
async function answers(
  gate: ProgramGate,
  starts: readonly ProgramStart[],
  waits: number[] = [],
): Promise<readonly boolean[]> {
  const all: boolean[] = [];
  for (const start of starts)
    all.push(await gate.decide({ ...start, folder: ground.project }, (ms) => void waits.push(ms)));
  return all;
}

function verdictsBelow(outcome: Outcome): ReadonlySet<string | undefined> {
  return new Set(ground.linesBelow(outcome).map((line) => line.decision?.verdict));
}

test("a program that the policy denies does not start, and the line below its command says why", async () => {
  let said: readonly boolean[] = [];
  const outcome = await ground.run({ cmd: "make" }, async (_request, gate) => {
    expect(gate).toMatchObject({ refuses: true, all: false });
    expect(gate.names).toEqual(expect.arrayContaining(["env", "id", "ls"]));
    said = await answers(gate, [ENV, startOf("/usr/bin/true", [])]);
  });
  expect(said).toEqual([false, true]);
  expect(ground.linesBelow(outcome)).toMatchObject([
    {
      event_type: "violation",
      code: "policy_denied",
      decision: { verdict: "deny", rule: { pattern: "env *", source: "default.yaml:6" } },
      violation: { kind: "program", subject: '["/usr/bin/env","true"]' },
    },
  ]);
});

test("copies are known by the programs of every PATH, whatever one a request says", async () => {
  let folders: readonly string[] = [];
  await ground.run({ cmd: "make", env: { PATH: "/opt/of-its-own" } }, async (_request, gate) => {
    folders = gate.folders ?? [];
    await answers(gate, [ENV]);
  });
  const usual = ground.broker.environments.path.split(":").filter((folder) => folder.startsWith("/"));
  expect(folders).toEqual(expect.arrayContaining(["/opt/of-its-own", ...usual]));
});

test("an edit holds for the next start of a command that runs, also one that only watches from then on", async () => {
  let said: readonly boolean[] = [];
  const outcome = await ground.run({ cmd: "make" }, async (_request, gate) => {
    const first = await answers(gate, [ENV]);
    ground.edit(POLICY("observe"));
    said = [...first, ...(await answers(gate, [ENV]))];
  });
  expect(said).toEqual([false, true]);
  expect(verdictsBelow(outcome)).toEqual(new Set(["deny", "would_deny"]));
});

test("what is to be isolated starts in an isolated command alone", async () => {
  const said: boolean[] = [];
  const starts = async (_request: unknown, gate: ProgramGate): Promise<void> => {
    said.push(...(await answers(gate, [LS])));
  };
  await ground.run({ cmd: "make" }, starts);
  await ground.run({ cmd: "ls / && make" }, starts);
  expect(said).toEqual([false, true]);
});

test("a start of a call that waits for no person is refused at once, and an answer that comes later counts", async () => {
  const said: boolean[] = [];
  await ground.run({ cmd: "make" }, async (_request, gate) => {
    said.push(...(await answers(gate, [ID])));
    const [question] = ground.broker.approvals.list();
    expect(question?.notes).toContain(
      "A running command starts this program; run the command again to use the answer",
    );
    ground.broker.approvals.decide(question?.approval_id ?? "", "once");
    said.push(...(await answers(gate, [ID])));
  });
  expect(said).toEqual([false, true]);
});

test("a start waits for a person, and an answer for the session counts for the same command of its own", async () => {
  const waits: number[] = [];
  let said: readonly boolean[] = [];
  await ground.run({ cmd: "make", approval_wait_ms: 60_000 }, async (_request, gate) => {
    const answer = answers(gate, [ID], waits);
    await expect.poll(() => ground.broker.approvals.list().length).toBe(1);
    const [question] = ground.broker.approvals.list();
    expect(question).toMatchObject({
      subject: { argv: ["id", "-u"] },
      rule: { pattern: "id *" },
      preview: { state: "none" },
    });
    expect(ground.broker.approvals.decide(question?.approval_id ?? "", "session")).toMatchObject({
      released: 1,
    });
    said = [...(await answer), ...(await answers(gate, [ID]))];
  });
  expect(said).toEqual([true, true]);
  expect(waits[0]).toBeGreaterThanOrEqual(60_000);
  expect(await ground.run({ argv: ["id", "-u"] }, () => Promise.resolve())).toMatchObject({ kind: "ran" });
  expect(ground.broker.approvals.list()).toEqual([]);
});

test("what a person approved starts without another question, and so it does when it is tried out before", async () => {
  let runs = 0;
  const asking = ground.run({ cmd: "id -u", approval_wait_ms: 20_000 }, async (_request, gate) => {
    runs += 1;
    expect(await answers(gate, [ID, ENV])).toEqual([true, false]);
  });
  await expect.poll(() => ground.broker.approvals.list()[0]?.preview.state).toBe("done");
  const [question] = ground.broker.approvals.list();
  ground.broker.approvals.decide(question?.approval_id ?? "", "once");
  expect(await asking).toMatchObject({ kind: "ran" });
  expect(ground.broker.approvals.list()).toEqual([]);
  expect(runs).toBe(2);
});

test("nobody is asked any more when the command is over, and the start is refused", async () => {
  const over = new AbortController();
  let answer: Promise<readonly boolean[]> | undefined;
  await ground.run(
    { cmd: "make", approval_wait_ms: 60_000 },
    async (_request, gate) => {
      answer = answers(gate, [ID]);
      await expect.poll(() => ground.broker.approvals.list().length).toBe(1);
    },
    over.signal,
  );
  expect(await answer).toEqual([false]);
});

test("a replay is gated by the rules of today, and asks nobody", async () => {
  const first = await ground.run({ cmd: "make" }, () => Promise.resolve());
  if (first.kind !== "ran") throw new Error(first.error.message);
  const span = ground.broker.trace.find(first.reply.span_id);
  if (span === undefined) throw new Error("It is not on record");
  let said: readonly boolean[] = [];
  ground.instead(async (_request, gate) => {
    said = await answers(gate, [ENV, ID, LS]);
  });
  expect(await replay(ground.broker, span, {}, true, new AbortController().signal)).not.toHaveProperty(
    "code",
  );
  expect(said).toEqual([false, false, true]);
});

test("where the policy watches, everything starts and would_ words are on record once", async () => {
  ground.edit(POLICY("observe"));
  let said: readonly boolean[] = [];
  const outcome = await ground.run({ cmd: "make" }, async (_request, gate) => {
    expect(gate.refuses).toBe(false);
    said = await answers(gate, [ENV, ENV, ID, LS]);
  });
  expect(said).toEqual([true, true, true, true]);
  expect(ground.linesBelow(outcome).length).toBe(3);
  expect(verdictsBelow(outcome)).toEqual(new Set(["would_ask", "would_deny", "would_isolate"]));
});
