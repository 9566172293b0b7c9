/** Commands behind a shim that the policy isolates: the broker runs them, and the shim passes on what is read, written and typed. */
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Span } from "../../schemas/generated/types.ts";
import { eventually, TestBroker } from "../support/broker/broker.ts";
import { withBroker } from "../support/broker/budgets.ts";
import { installShim, isolating, shimsEnvironment, shimsOf } from "../support/broker/shims.ts";
import { processesWith } from "../support/processes/processes.ts";
import { actors, type Ended, runAs } from "../support/users/users.ts";

const HELD = /substrate: Changes are held, [^\n]*'substrate apply (spn_[^']+)'/;

describe.each(actors())("isolated commands behind shims, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: isolating("enforce") } });
    await installShim(broker, "bash");
  });
  afterAll(() => broker.stop());

  /** A shell of the actor's, on the host. */
  function shell(script: string, { env = {}, stdin = "", at = broker } = {}): Promise<Ended> {
    return runAs(actor, ["/bin/sh", "-c", script], {
      cwd: at.project,
      env: { ...shimsEnvironment(at), ...env },
      stdin,
    });
  }

  /** The lines of commands, of one event and with a text among their words. */
  function linesWith(event: Span["event_type"], text: string, at = broker): readonly Span[] {
    return at.spans().filter(({ cmd, event_type: type }) => type === event && cmd?.includes(text));
  }

  async function pendingIds(): Promise<readonly string[]> {
    const { document } = await broker.operator("GET", "/v1/approvals");
    return (document as { approvals: { approval_id: string }[] }).approvals.map((one) => one.approval_id);
  }

  test("read a pipe of four megabytes and write to both outputs; their exit code and signal are the shim's", async () => {
    const bytes = randomBytes(2 * 1024 * 1024).toString("hex");
    const ran = await shell("bash -c 'cat; echo to-err >&2; exit 9'", { stdin: bytes });
    expect([ran.code, ran.stderr]).toEqual([9, "to-err\n"]);
    expect(ran.stdout === bytes).toBe(true);
    expect((await shell("bash -c 'kill -TERM $$'; echo $?")).stdout).toBe("143\n");
    expect((await shell("bash -c 'no-such-program'; echo $?")).stdout).toBe("127\n");
  });

  test("print while they run, and end where their reader ends", async () => {
    const marker = `marker-${randomBytes(6).toString("hex")}`;
    const ran = await shell(`{ bash -c 'yes ${marker}'; echo "code $?" >&2; } | head -n 1`);
    expect(ran).toMatchObject({ stdout: `${marker}\n`, stderr: "code 141\n" });
    expect(await eventually(() => processesWith(`yes ${marker}`).length === 0, 5000)).toBe(true);
  });

  test("get the first signal, the second ends the shim and with it the command; no shim stays", async () => {
    const marker = `marker-${randomBytes(6).toString("hex")}`;
    const loop = `while :; do sleep 0.05; done`;
    const isReady = "for i in $(seq 200); do grep -q ready out 2>/dev/null && break; sleep 0.05; done";
    const polite = `bash -c 'trap "echo caught; exit 8" TERM; : ${marker}; echo ready; ${loop}'`;
    const ran = await shell(`${polite} > out & ${isReady}; kill $!; wait $!; echo "code $?"; cat out`);
    expect(ran.stdout).toBe("code 8\nready\ncaught\n");
    const deaf = `bash -c 'trap "" TERM; : ${marker}; echo ready; ${loop}'`;
    const ended = await shell(
      `rm out; ${deaf} > out & ${isReady}; kill $!; sleep 0.3; kill $!; wait $!; echo "code $?"`,
    );
    expect(ended.stdout).toBe("code 143\n");
    expect(await eventually(() => processesWith(marker).length === 0, 5000)).toBe(true);
    expect(await eventually(() => shimsOf(broker.home).length === 0, 5000)).toBe(true);
  });

  test("hold their changes, which the shim says and the operator applies; the denied twin changes and starts nothing", async () => {
    const file = join(broker.project, "made");
    const { code, stdout, stderr } = await shell(`bash -c 'echo content > made; cat made'`, {
      env: { SUBSTRATE_PARENT_SPAN: "spn_outer" },
    });
    expect([code, stdout, existsSync(file)]).toEqual([0, "content\n", false]);
    const [, span = ""] = HELD.exec(stderr) ?? [];
    expect(await broker.span(span)).toMatchObject({
      component: "world",
      agent_id: "human",
      parent_span: "spn_outer",
      exit: 0,
      decision: { verdict: "isolate" },
      cmd: JSON.stringify(["bash", "-c", "echo content > made; cat made"]),
    });
    expect(linesWith("command_start", "echo content").map(({ span_id: id }) => id)).toEqual([span]);
    expect((await broker.cli(["apply", span])).code).toBe(0);
    expect(readFileSync(file, "utf8")).toBe("content\n");

    const denied = await shell(`bash denied 'echo content > unmade'`);
    expect(denied.code).toBe(126);
    expect(denied.stderr).toMatch(
      /^substrate: bash: Policy 'default' denies this command: .*default\.yaml:5/,
    );
    expect(linesWith("violation", "unmade")).toMatchObject([{ component: "shim", exit: 126 }]);
    expect(linesWith("command_start", "unmade")).toEqual([]);
  });

  test("stand below the program that called them, and start programs of the shim's name without another question", async () => {
    broker.write(join(broker.project, "outer.sh"), `bash -c 'echo $0; bash -c "echo inner"' nested\n`);
    const ran = await shell("bash outer.sh");
    expect(ran).toMatchObject({ code: 0, stdout: "nested\ninner\n" });
    const [outer] = linesWith("command_start", "outer.sh");
    const inside = linesWith("command_start", "nested");
    expect(outer).toMatchObject({ component: "shim", parent_span: null });
    expect(inside).toMatchObject([{ component: "world", parent_span: outer?.span_id }]);
    expect(linesWith("command_start", "echo inner")).toEqual(inside);
    expect(linesWith("violation", "inner")).toEqual([]);
  });

  test("that a person must approve are asked about once, and run isolated after a yes", async () => {
    for (const [decision, code] of [
      ["once", 0],
      ["deny", 126],
    ] as const) {
      const running = shell(`bash -c ': asked; echo yes > ${decision}'`);
      expect(await eventually(async () => (await pendingIds()).length === 1, 10_000)).toBe(true);
      const [id] = await pendingIds();
      await broker.operator("POST", `/v1/approvals/${id}`, { decision });
      const ended = await running;
      expect([ended.code, existsSync(join(broker.project, decision))]).toEqual([code, false]);
      expect(ended.stderr).toContain("waits for a person");
      expect(HELD.test(ended.stderr)).toBe(code === 0);
      expect(await pendingIds()).toEqual([]);
    }
  });

  test("do not run where no project can be, and not with SUBSTRATE_WORLD=disabled; both say why", async () => {
    const outside = await shell("cd / && bash -c 'echo ran'");
    expect([outside.code, outside.stdout]).toEqual([126, ""]);
    expect(outside.stderr).toContain("substrate: bash: ");
    expect(linesWith("violation", "echo ran")).toMatchObject([{ component: "shim", outcome: "refused" }]);
    const disabled = await shell("bash -c 'echo ran'", { env: { SUBSTRATE_WORLD: "disabled" } });
    expect([disabled.code, disabled.stdout]).toEqual([125, ""]);
    expect(disabled.stderr).toContain("SUBSTRATE_WORLD=disabled");
  });

  test("run on the host in observe mode, and with SHIM_BYPASS=1", async () => {
    const bypassed = await shell("bash -c 'echo on the host > bypassed'", { env: { SHIM_BYPASS: "1" } });
    expect(bypassed).toMatchObject({ code: 0, stderr: "" });
    expect(existsSync(join(broker.project, "bypassed"))).toBe(true);
    await withBroker(actor, { policies: { default: isolating("observe") } }, async (at) => {
      await installShim(at, "bash");
      expect(await shell("bash -c 'echo on the host > made'", { at })).toMatchObject({ code: 0, stderr: "" });
      expect(existsSync(join(at.project, "made"))).toBe(true);
      expect(linesWith("command_start", "made", at)).toMatchObject([{ component: "shim" }]);
    });
  });
});
