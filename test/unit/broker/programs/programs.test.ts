/** What is told of programs becomes spans, in a real trace. */
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  ProgramRecorder,
  type ProgramRecorderOptions,
} from "../../../../broker/programs/program-recorder.ts";
import type { Trace } from "../../../../broker/spans/trace.ts";
import { verifyTrace } from "../../../../broker/spans/verify.ts";
import type { ProgramEvent } from "../../../../world/model/programs.ts";
import { FAKE_SECRETS } from "../../../corpus/secrets.ts";
import {
  NOW,
  type Span,
  type TestTrace,
  endOf,
  ended,
  record,
  refused,
  started,
  testTrace,
  validateSpan,
} from "../../../support/trace/traces.ts";

const COMMAND = record("spn_command");
const OVER = { closed: Promise.resolve() };

let at: TestTrace;
let trace: Trace;

beforeEach(async () => {
  at = testTrace();
  trace = await at.open();
  await trace.start(COMMAND);
});

afterEach(async () => {
  await trace.end();
  at.remove();
});

function recorder(change: Partial<ProgramRecorderOptions> = {}): ProgramRecorder {
  return new ProgramRecorder({ trace, command: COMMAND, known: new Map(), ...change });
}

function lines(): readonly Span[] {
  const text = readFileSync(at.path, "utf8").trimEnd();
  const all = text.split("\n").map((line) => JSON.parse(line) as Span);
  for (const span of all) expect(validateSpan(span), JSON.stringify(validateSpan.errors)).toBe(true);
  return all.filter(({ event_type: type }) => type === "exec");
}

describe("programs of a command", () => {
  test("a start and an end that come together are one line, below the program that asked", async () => {
    const programs = recorder();
    programs.add(
      [
        started(1, 0, ["sh", "-c", "cc x.c"]),
        started(2, 1, ["cc", "x.c"]),
        ended(2, { code: 3, after: 2_500_000n }),
        ended(1, { code: 0, after: 4_000_000n }),
      ],
      0,
    );
    await programs.finish(OVER, false);
    const [shell, compiler, ...more] = lines();
    expect(more).toEqual([]);
    expect(shell).toMatchObject({
      parent_span: "spn_command",
      component: "world",
      cmd: '["sh","-c","cc x.c"]',
      outcome: "ended",
      exit: 0,
      duration_ms: 4,
      agent_id: "ann",
      session_id: "ses_1",
      program: { path: "/usr/bin/sh", pid: 11, cut: false, replaced: false },
    });
    expect(compiler).toMatchObject({ parent_span: shell?.span_id, exit: 3, duration_ms: 2.5 });
    expect(shell?.program?.started_at).toBe("2026-01-31T12:00:00.000000Z");
    expect(programs.counts).toEqual({ recorded: 2, left_out: 0 });
  });

  test("one that still runs has a line at once, and another one when it ends", async () => {
    const programs = recorder();
    programs.add([started(1, 0, ["sleep", "9"])], 0);
    await expect.poll(() => lines().length).toBe(1);
    expect(lines()[0]).toMatchObject({ outcome: null, exit: null, duration_ms: null });
    programs.add([ended(1, { signal: 15, after: 1_000_000n })], 0);
    await programs.finish(OVER, false);
    const [first, last] = lines();
    expect(last).toMatchObject({ span_id: first?.span_id, exit: 143, signal: "SIGTERM", outcome: "ended" });
    expect(trace.find(first?.span_id ?? "")).toMatchObject({ signal: "SIGTERM" });
  });

  test("says what was refused, what another program took over, and what this kernel does not tell", async () => {
    const programs = recorder();
    programs.add(
      [
        started(1, 0, ["sh"]),
        refused(1, ["curl", "x"]),
        started(2, 1, ["env", "true"]),
        ended(2, { replaced: true }),
        started(3, 2, ["true"]),
        ended(3, {}),
        ended(1, { code: 0 }),
      ],
      0,
    );
    await programs.finish(OVER, false);
    const [shell, curl, env, last] = lines();
    expect(curl).toMatchObject({ parent_span: shell?.span_id, outcome: "refused", exit: null });
    expect(env).toMatchObject({ outcome: "ended", exit: null, program: { replaced: true } });
    expect(last).toMatchObject({ parent_span: env?.span_id, outcome: "ended", exit: null, signal: null });
  });

  test("what is beyond the bound is counted, with what the world could not tell", async () => {
    const programs = recorder({ limits: { programs: 3, text: 1000 } });
    programs.add(
      [1, 2, 3, 4, 5].map((number) => started(number, number - 1, ["true"])),
      7,
    );
    programs.add([refused(5, ["x"]), ...[5, 4, 3, 2, 1].map((number) => ended(number, { code: 0 }))], 0);
    await programs.finish(OVER, false);
    expect(lines()).toHaveLength(3);
    expect(programs.counts).toEqual({ recorded: 3, left_out: 10 });
    const wordy = recorder({ limits: { programs: 100, text: 1000 } });
    wordy.add(
      [1, 2, 3].map((number) => started(number, 0, ["x".repeat(400)])),
      0,
    );
    await wordy.finish(OVER, false);
    expect(wordy.counts).toEqual({ recorded: 2, left_out: 1 });
  });

  test("a kept program goes on being recorded after its command, and its end is awaited until nothing is left", async () => {
    let close = (): void => {};
    const closed = new Promise<void>((resolve) => {
      close = resolve;
    });
    const programs = recorder();
    programs.add([started(1, 0, ["sh"]), started(2, 1, ["server"]), ended(1, { code: 0 })], 0);
    await programs.finish({ closed }, true);
    trace.close(endOf("spn_command"));
    expect(lines()).toHaveLength(2);
    programs.add([started(3, 2, ["worker"]), ended(3, { code: 1 })], 0);
    await expect.poll(() => lines().length).toBe(3);
    close();
    await expect.poll(() => lines().length).toBe(4);
    expect(lines()[3]).toMatchObject({ cmd: '["server"]', outcome: "lost", exit: null });
  });

  test("a broker that is killed leaves whole lines, and the next one closes what was open as lost", async () => {
    const programs = recorder();
    programs.add([started(1, 0, ["sh"]), started(2, 1, ["make"])], 0);
    await expect.poll(() => lines().length).toBe(2);
    await trace.end();
    trace = await at.open();
    expect(lines().map(({ outcome }) => outcome)).toEqual([null, null, "lost", "lost"]);
    expect(lines()[3]).not.toHaveProperty("charged_ms");
    expect(await verifyTrace(at.path, [trace.head])).toMatchObject({ ok: true });
  });

  test("lines for which there is no room wait for it; given up, none is left whose parent has none", async () => {
    let room = false;
    const full = Object.assign(new Error("ENOSPC"), { syscall: "write" });
    const addAll: Trace["addAll"] = (all) => {
      if (!room) throw full;
      trace.addAll(all);
    };
    const told: string[] = [];
    const small = { addAll, onFault: (what: string): void => void told.push(what) };
    const programs = recorder({ trace: small });
    programs.add([started(1, 0, ["sh"])], 0);
    await expect.poll(() => told.length).toBeGreaterThan(0);
    programs.add([ended(1, { code: 0 })], 0);
    room = true;
    await programs.finish(OVER, false);
    expect(lines().map(({ outcome }) => outcome)).toEqual([null, "ended"]);
    room = false;
    const lost = recorder({ trace: small });
    lost.add([started(1, 0, ["sh"]), started(2, 1, ["cc"]), ended(2, { code: 0 })], 0);
    await lost.finish(OVER, false);
    room = true;
    lost.add([started(3, 2, ["ld"]), ended(3, { code: 0 })], 0);
    await lost.finish(OVER, false);
    expect(lost.counts).toEqual({ recorded: 0, left_out: 3 });
    expect(lines()).toHaveLength(2);
  });

  test("go with the files of their trace, which is whole before and after", async () => {
    await trace.end();
    trace = await at.open({ limits: { fileBytes: 20_000, maxBytes: 60_000 } });
    for (let round = 0; round < 8; round += 1) {
      const span = `spn_${round}`;
      await trace.start(record(span, { ts: new Date().toISOString() }));
      const programs = recorder({ command: record(span) });
      const all = Array.from({ length: 20 }, (_, at) => started(at + 1, at, ["cc", `${at}.c`]));
      programs.add([...all, ...all.map(({ number }) => ended(number, { code: 0 }))], 0);
      await programs.finish(OVER, false);
      trace.close(endOf(span, { ts: new Date().toISOString() }));
      await new Promise((resolve) => setTimeout(resolve, 600));
    }
    trace.close(endOf("spn_command"));
    const isGone = (): boolean => trace.childIds("spn_0").length === 0 && trace.find("spn_0") === undefined;
    await expect.poll(isGone, { timeout: 5000 }).toBe(true);
    expect(trace.childIds("spn_7")).toHaveLength(1);
    expect(at.files().length).toBeLessThan(6);
    const list = { agent: undefined, session: undefined, before: undefined, limit: 1000, programs: true };
    expect(trace.list(list).spans.length).toBeLessThan(120);
    // On a busy machine a file is still needed when its turn comes, which is said, and it goes later.
    expect(at.faults.filter((what) => !what.includes("its oldest file is still in use"))).toEqual([]);
    expect(await verifyTrace(at.path, [])).toMatchObject({ ok: true });
  }, 30_000);

  test("a time that no date can say costs the spans, and neither the broker nor the command", async () => {
    const programs = recorder();
    programs.add([{ ...started(1, 0, ["sh"]), at: NOW * 1_000_000n }], 0);
    await programs.finish(OVER, false);
    expect(programs.counts).toEqual({ recorded: 0, left_out: 1 });
    expect(at.faults).toHaveLength(1);
  });
});

// Whatever is told of programs, in whatever batches, and wherever it stops: what is recorded is a tree.

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

// Words of programs are as public as the trace: no credential of theirs gets there.

const KNOWN = new Map([
  ["MY_TOKEN", "blue-parrot-42"],
  ["MY_PASSPHRASE", "correct horse battery staple"],
]);

async function recorded(argv: readonly string[], cut = false): Promise<Span> {
  const programs = new ProgramRecorder({ trace, command: COMMAND, known: KNOWN });
  programs.add([{ ...started(1, 0, argv, cut), path: `/work/${argv[0]}` }, ended(1, { code: 0 })], 0);
  await programs.finish({ closed: Promise.resolve() }, false);
  return JSON.parse(readFileSync(at.path, "utf8").trimEnd().split("\n").at(-1) ?? "") as Span;
}

describe("words of a program", () => {
  test.each([
    [["curl", "-H", "Authorization: Bearer s3cr3t-v4lue-0123456789"], "s3cr3t"],
    [["git", "clone", "https://ann:hunter2-hunter2@git.example/x.git"], "hunter2"],
    [["psql", "--password", "tr0ub4dor-and-3"], "tr0ub4dor"],
    [["curl", "-u", "x", "https://a.example/?k=blue-parrot-42"], "blue-parrot"],
    [["gpg", "--passphrase-fd=0", "correct horse battery staple"], "horse"],
    [["sh", "-c", "export AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY; true"], "wJalr"],
    [["tool-blue-parrot-42"], "blue-parrot"],
  ])("%j has none left, and says what was replaced", async (argv, secret) => {
    const span = await recorded(argv);
    expect(readFileSync(at.path, "latin1")).not.toContain(secret);
    expect(span.redacted.length).toBeGreaterThan(0);
    expect(span.cmd).toContain("[redacted:");
  });

  test("of a shell are looked at as those of a command are", async () => {
    for (const { command, secret } of FAKE_SECRETS) {
      const { cmd } = await recorded(["sh", "-c", command]);
      expect((JSON.parse(cmd ?? "") as string[]).at(-1), command).not.toContain(secret);
    }
  });

  test("that end in the middle of a secret keep nothing of it", async () => {
    const ends: readonly (readonly [string, string])[] = [
      ["x=blue-par", "blue-par"],
      ["say correct horse batt", "correct"],
      ["ghp_0123456789abc", "ghp_0123"],
      ["-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0\nBAQEFAASCBK", "BADANB"],
    ];
    for (const [word, secret] of ends) {
      const span = await recorded(["sh", "-c", word], true);
      expect(span.cmd).not.toContain(secret);
      expect(span.program?.cut).toBe(true);
    }
    expect((await recorded(["sh", "-c", "echo one two"], true)).cmd).toBe('["sh","-c","echo one …"]');
  });
});
