/** How long a command may run, and what is said when its time is over; and that no output is cut in silence. */
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { ErrorReply, ExecuteReply } from "../../schemas/generated/types.ts";
import { validateExecuteReply, validateSpan } from "../../schemas/generated/validators.js";
import { runAtTerminal, whenShown } from "../support/programs/at-terminal.ts";
import { actors } from "../support/users/users.ts";
import { eventually, TestBroker } from "../support/broker/broker.ts";
import { begun, giving, stateOf, withBroker } from "../support/broker/budgets.ts";
import { installationFor } from "../support/broker/installation.ts";

const policy = (text: string, id = "default", more = ""): string =>
  `id: ${id}\nname: Limits\nmode: enforce\n${more}commands: ${text}\n`;

describe.each(actors())("time limits, as $kind", (actor) => {
  const limited = (timeout: string) => ({ policies: { default: policy(`{ timeout: ${timeout} }`) } });

  test("commands.timeout ends every command, and the policy's line is named", async () => {
    await withBroker(actor, limited("600ms"), async (broker) => {
      for (const body of [{}, { timeout_ms: 50_000 }, { no_time_limit: true }]) {
        const reply = await broker.run({ cmd: "echo begun; sleep 60", ...body });
        expect(reply).toMatchObject({ timed_out: true, stdout: "begun\n" });
        expect(reply.duration_ms).toBeGreaterThanOrEqual(600);
        expect(reply.duration_ms).toBeLessThan(10_000);
        expect(reply.notices).toHaveLength(1);
        expect(reply.notices[0]).toMatchObject({ kind: "budget" });
        expect(reply.notices[0]?.message).toMatch(/after 600 ms.*'default'.*timeout: 600ms, default\.yaml:4/);
        expect(reply.stderr).toContain("commands.timeout: 600ms");
        const { stdout: _out, stderr: _err, ...whole } = reply;
        expect(validateExecuteReply(whole), JSON.stringify(validateExecuteReply.errors)).toBe(true);
        const span = await broker.span(reply.span_id);
        expect(span).toMatchObject({
          outcome: "timed_out",
          violation: { kind: "limit", subject: "commands.timeout" },
        });
        expect(validateSpan(span)).toBe(true);
      }
      const exec = await broker.cli(["exec", "--timeout", "1h", "--", "sleep 60"]);
      expect(exec.code).toBe(143);
      expect(exec.stderr.split("\n").filter((line) => line.includes("default.yaml:4"))).toHaveLength(1);
      expect(exec.stderr).not.toContain("--timeout");
    });
  });

  test("the lowest holds: of call and policy, and of two policies", async () => {
    const profile = policy("{ timeout: 500ms }", "short", "selectable: true\n");
    const options = { policies: { default: policy("{ timeout: 2h }"), short: profile } };
    await withBroker(actor, options, async (broker) => {
      const own = await broker.run({ cmd: "sleep 60", timeout_ms: 300 });
      expect(own).toMatchObject({ timed_out: true, stderr: "" });
      expect(own.notices[0]?.message).toMatch(/300 ms.*timeout_ms: 300/);
      const narrowed = await broker.run({ cmd: "sleep 60", profile: "short", no_time_limit: true });
      expect(narrowed.notices[0]?.message).toMatch(/500 ms.*'short'.*short\.yaml:5/);
    });
  });

  test("null is no limit, and what is no time does not load", async () => {
    await withBroker(actor, limited("null"), async (broker) => {
      expect(await broker.run({ cmd: "sleep 0.3", no_time_limit: true })).toMatchObject({
        timed_out: false,
        notices: [],
      });
      for (const wrong of ["30", '"30"', "0s", "1.5h", "-1m", "soon", "30 min"]) {
        broker.write(join(broker.project, "p.yaml"), policy(`{ timeout: ${wrong} }`));
        const { code, stdout } = await broker.cli(["policy", "validate", "p.yaml"]);
        expect(code, wrong).toBe(1);
        expect(stdout, wrong).toMatch(
          /p\.yaml:4:\d+: 'commands\.timeout' must be .*a duration such as 90s, 30m or 2h, or null/,
        );
      }
    });
  });

  test("exec has no limit unless asked, and names the option that ended a command", async () => {
    await withBroker(actor, {}, async (broker) => {
      const { stdout } = await broker.cli(["exec", "--json", "--", "true"]);
      const { span_id: span } = JSON.parse(stdout) as ExecuteReply;
      expect((await broker.span(span)).timeout_ms).toBeUndefined();
      const ended = await broker.cli(["exec", "--timeout", "1s", "--", "echo out; sleep 60"]);
      expect(ended).toMatchObject({
        code: 143,
        stdout: "out\n",
        stderr:
          "substrate: The command was ended after 1 s: the call set this limit (timeout_ms: 1000; --timeout of substrate exec)\n",
      });
      const wrong = await broker.cli(["exec", "--timeout", "soon", "--", "true"]);
      expect(wrong.code).toBe(125);
      expect(wrong.stderr).toMatch(/'soon' as --timeout.*90s.*milliseconds/);
      const both = await broker.refused({ cmd: "true", timeout_ms: 5, no_time_limit: true });
      expect(both).toMatchObject({ status: 400, code: "invalid_request" });
    });
  });

  test("a command without a limit leaves run time to others, and ends with the budget", async () => {
    await withBroker(actor, giving("{ default: { max_runtime_ms: 90000 } }"), async (broker) => {
      const leaving = new AbortController();
      const long = broker
        .post({ cmd: "sleep 60", no_time_limit: true }, leaving.signal)
        .catch(() => undefined);
      expect(await eventually(() => begun(broker) === 1, 5000)).toBe(true);
      expect(await stateOf(broker, "test", "max_runtime_ms")).toMatchObject({ reserved: 60_000 });
      expect(await broker.run({ cmd: "echo here", no_time_limit: true })).toMatchObject({ stdout: "here\n" });
      leaving.abort();
      await long;
    });
    await withBroker(actor, giving("{ default: { max_runtime_ms: 800 } }"), async (broker) => {
      const cut = await broker.run({ cmd: "sleep 60", no_time_limit: true });
      expect(cut).toMatchObject({ timed_out: true });
      expect(cut.stderr).toMatch(/after 800 ms: agent 'test' had used up 800 milliseconds of run time/);
      const { status, document } = await broker.post({ cmd: "true", no_time_limit: true });
      expect(status).toBe(429);
      expect((document as ErrorReply).error.budget).toMatchObject({ name: "max_runtime_ms" });
    });
  });
});

describe.each(actors())("output, as $kind", (actor) => {
  test("exec prints all of it; what --json could not hold ends with 125, and a sentence says how much is missing and why", async () => {
    await withBroker(actor, {}, async (broker) => {
      for (const words of ["", " >&2"]) {
        const cmd = `{ head -c 20000000 /dev/zero | tr '\\0' x; }${words}; exit 3`;
        const whole = await broker.cli(["exec", "--", cmd]);
        expect(whole.code).toBe(3);
        expect(whole.stdout.length + whole.stderr.length).toBe(20_000_000);
        const cut = await broker.cli(["exec", "--json", "--", cmd]);
        expect(cut.code).toBe(125);
        expect(JSON.parse(cut.stdout)).toMatchObject({ truncated: true, exit: 3 });
        expect(cut.stderr).toMatch(
          /substrate: 11611392 of 20000000 bytes of standard (output|error) .*8388608 bytes.*max_output_bytes.*exit code was 3\n$/,
        );
      }
    });
  });
});

describe.each(actors().slice(0, 1))("a terminal's input, as $kind", (actor) => {
  test("is not sent, which is said; with --stdin it is what was typed up to Ctrl-D", async () => {
    const broker = await TestBroker.start(actor, {});
    try {
      const silent = await onTerminal(broker, ["exec", "--", "cat"], "");
      expect(silent.match(/the command gets no input from this terminal; --stdin/g)).toHaveLength(1);
      const typed = await onTerminal(broker, ["exec", "--stdin", "--", "tr a-z A-Z"], "typed\r\u0004");
      expect(typed).toMatch(/Ctrl-D/);
      expect(typed).toContain("TYPED");
    } finally {
      await broker.stop();
    }
  });

  test("has a Ctrl-C for the command, whose output is there by then, and whose last words follow", async () => {
    const broker = await TestBroker.start(actor, {});
    try {
      const words = ["exec", "--", "trap 'echo last; exit 9' INT; echo text; while :; do sleep 0.05; done"];
      const ended = await onTerminal(broker, words, "\u0003", "text\r\n");
      expect(ended).toMatch(/text\r\n[^]*last\r\n$/);
    } finally {
      await broker.stop();
    }
  });

  async function onTerminal(
    broker: TestBroker,
    words: readonly string[],
    typed: string,
    ready = "Ctrl-D",
  ): Promise<string> {
    const { node, launcher } = await installationFor(actor);
    const env = { PATH: "/usr/bin:/bin", HOME: actor.home, TERM: "xterm", SUBSTRATE_HOME: broker.home };
    const { text } = await runAtTerminal(
      [node, launcher, ...words],
      { cwd: broker.project, env },
      whenShown(ready, ({ type }) => type(typed)),
    );
    return text;
  }
});
