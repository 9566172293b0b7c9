/** Programs on PATH that ask before they start, outside every world: judged by what the program behind them did. */
import type { ChildProcess } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ErrorReply, ReportReply, Span } from "../../schemas/generated/types.ts";
import { type Ended, actors, runAs, spawnAs } from "../support/users/users.ts";
import { eventually, TestBroker } from "../support/broker/broker.ts";
import { skip } from "../support/run/skips.ts";
import { pathWithShims, SHIM_POLICY as POLICY, shimsOf, toolFor } from "../support/broker/shims.ts";

describe.each(actors())("shims, as $kind", (actor) => {
  let broker: TestBroker;
  let bin = "";
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    bin = await toolFor(broker);
  });
  afterAll(() => broker.stop());

  const path = (): string => pathWithShims(broker, bin);
  const environment = (more: object = {}): Record<string, string> => ({
    PATH: path(),
    SUBSTRATE_HOME: broker.home,
    ...more,
  });

  function cli(...words: readonly string[]): Promise<Ended> {
    return broker.cli(["shim", ...words], { env: { PATH: `${bin}:/usr/bin:/bin` } });
  }

  /** A shell of the actor's, on the host. */
  function shell(script: string, env: object = {}, stdin = ""): Promise<Ended> {
    return runAs(actor, ["/bin/sh", "-c", script], { cwd: broker.project, env: environment(env), stdin });
  }

  function spansOf(words: readonly string[]): readonly Span[] {
    const cmd = JSON.stringify(words);
    return broker.spans().filter((span) => span.component === "shim" && span.cmd === cmd);
  }

  const closed = async (words: readonly string[]): Promise<Span | undefined> => {
    const find = (): Span | undefined =>
      spansOf(words).find(({ event_type: type }) => type === "command_complete");
    await eventually(() => find() !== undefined, 10_000);
    return find();
  };

  test("what a rule denies does not start, and says why; its twin starts and is on record", async () => {
    const denied = await shell(`tool denied touch '${join(broker.project, "denied")}'`);
    expect(denied.code).toBe(126);
    expect(denied.stderr).toMatch(
      /^substrate: tool: Policy 'default' denies this command: .*default\.yaml:5/,
    );
    expect(existsSync(join(broker.project, "denied"))).toBe(false);
    const words = ["tool", "twin", "touch", join(broker.project, "twin")];
    const twin = await shell(words.join(" "));
    expect(twin).toMatchObject({ code: 0, stdout: "", stderr: "" });
    expect(existsSync(join(broker.project, "twin"))).toBe(true);
    expect(await closed(words)).toMatchObject({
      component: "shim",
      agent_id: "human",
      exit: 0,
      world_id: null,
      isolation: null,
      replayable: false,
      decision: { verdict: "allow" },
    });
    expect(spansOf(["tool", "denied", "touch", join(broker.project, "denied")])).toMatchObject([
      { event_type: "violation", outcome: "refused", exit: 126, decision: { verdict: "deny" } },
    ]);
  });

  test("a program is on record also with another HOME, and without an environment", async () => {
    const path = `${join(broker.home, "shims")}:${bin}:/usr/bin:/bin`;
    for (const [number, own] of [`HOME=${broker.project}`, "A=b"].entries()) {
      const words = ["tool", `without-${number}`, "true"];
      const ended = await shell(`exec env -i '${own}' 'PATH=${path}' ${words.join(" ")}`);
      expect(ended).toMatchObject({ code: 0, stderr: "" });
      expect(await closed(words)).toMatchObject({ component: "shim", exit: 0 });
    }
  });

  test("what a terminal would obey, or nobody sees, is written as a number in what it says", async () => {
    const words = "\u009b31m \u0085 \u202e \u200b \u{e0041} \u001b[31m ünï → 🙂";
    const { code, stderr } = await shell(`tool denied '${words}'; LC_ALL=C tool denied "$(printf '\\233c')"`);
    expect(code).toBe(126);
    expect(stderr.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    expect(stderr).toContain("\\x9b31m \\x85 \\u{202e} \\u{200b} \\u{e0041} \\x1b[31m ünï → 🙂");
  });

  test("by an absolute path of the shim, by env, xargs, find and a script, the same rule holds", async () => {
    const file = join(broker.project, "around");
    const shim = join(broker.home, "shims/tool");
    for (const around of [
      `'${shim}' denied touch '${file}'`,
      `env tool denied touch '${file}'`,
      `echo '${file}' | xargs tool denied touch`,
      `find . -maxdepth 0 -exec tool denied touch '${file}' ';'`,
      `sh -c 'tool denied touch "${file}"'`,
      `tool "denied" touch '${file}'`,
    ]) {
      await shell(around);
      expect(existsSync(file), around).toBe(false);
    }
  });

  test("exit codes, signals, words, bytes, descriptors and the process itself are the program's own", async () => {
    expect((await shell("tool exit 7")).code).toBe(7);
    expect((await closed(["tool", "exit", "7"]))?.exit).toBe(7);
    expect((await shell("tool signal TERM; echo $?")).stdout).toBe("143\n");
    const told = await closed(["tool", "signal", "TERM"]);
    expect([told?.exit, told?.signal]).toEqual([143, "SIGTERM"]);
    expect((await shell("tool words '' 'a b' '\"' \"$(printf 'x\\ny')\"")).stdout).toBe('words||a b|"|x\ny|');
    const bytes = "line\n".repeat(50_000);
    expect((await shell("tool cat", {}, bytes)).stdout).toBe(bytes);
    const [bare, shimmed] = [await shell(`'${bin}/tool' fds`), await shell("tool fds")];
    expect(shimmed.stdout).toBe(bare.stdout);
    const child = spawnAs(actor, [join(broker.home, "shims/tool"), "pid"], {
      cwd: broker.project,
      env: environment(),
      stdio: ["ignore", "pipe", "inherit"],
    });
    expect(await outputOf(child)).toBe(`${child.pid}\n`);
  });

  test("python finds itself behind its shim, so that no virtual environment leads to a shim", async () => {
    const script = "python3 -c 'import os, sys; print(sys.executable, os.path.basename(sys.orig_argv[0]))'";
    const bare = await shell(`PATH=/usr/bin:/bin; ${script}`);
    if (bare.code !== 0) return skip("python behind its shim", `python3: ${bare.stderr.trim()}`);
    expect((await cli("install", "python3")).code).toBe(0);
    const shim = join(broker.home, "shims/python3");
    expect((await shell(`command -v python3; ${script}`)).stdout).toBe(`${shim}\n${bare.stdout}`);
    expect((await cli("remove", "python3")).code).toBe(0);
  });

  test("a program started by a program behind a shim stands below it", async () => {
    await shell("tool chain", { SUBSTRATE_PARENT_SPAN: "spn_outer" });
    const [outer, leaf] = [await closed(["tool", "chain"]), await closed(["tool", "leaf"])];
    expect(outer?.parent_span).toBe("spn_outer");
    expect(leaf?.parent_span).toBe(outer?.span_id);
  });

  test("what asks waits for a person, starts after a yes, and not after a no", async () => {
    for (const [decision, starts] of [
      ["once", true],
      ["deny", false],
    ] as const) {
      const file = join(broker.project, `asked-${decision}`);
      const running = shell(`tool ask touch '${file}'`);
      const id = await pendingId(broker);
      expect(existsSync(file)).toBe(false);
      expect((await broker.operator("POST", `/v1/approvals/${id}`, { decision })).status).toBe(200);
      const { code, stderr } = await running;
      expect([code, existsSync(file)]).toEqual([starts ? 0 : 126, starts]);
      expect(stderr).toContain("waits for a person");
    }
  });

  test("SHIM_BYPASS=1 starts it, and that is on record", async () => {
    const words = ["tool", "denied", "touch", join(broker.project, "bypassed")];
    expect((await shell(words.join(" "), { SHIM_BYPASS: "1" })).code).toBe(0);
    expect(existsSync(join(broker.project, "bypassed"))).toBe(true);
    expect((await closed(words))?.message).toContain("SHIM_BYPASS=1");
  });

  test("nobody is left once the program has ended, or was refused, and nothing of the environment is kept", async () => {
    const running = shell("(until [ -e go ]; do sleep 0.05; done) | tool cat", {
      SECRET_OF_MINE: "wire-tap-4711",
    });
    expect(await eventually(() => shimsOf(broker.home).length === 1, 10_000)).toBe(true);
    const asking = shell("tool ask touch x");
    const id = await pendingId(broker);
    expect(shimsOf(broker.home).length).toBeGreaterThan(1);
    await broker.operator("POST", `/v1/approvals/${id}`, { decision: "deny" });
    expect((await asking).code).toBe(126);
    expect(await eventually(() => shimsOf(broker.home).length === 1, 10_000)).toBe(true);
    broker.write(join(broker.project, "go"), "");
    expect((await running).code).toBe(0);
    expect(await eventually(() => shimsOf(broker.home).length === 0, 10_000)).toBe(true);
    const trace = readFileSync(join(broker.home, "trace/trace.jsonl"), "utf8");
    expect(trace).not.toContain("wire-tap-4711");
  });

  test("only whose program it is may report its end, and once", async () => {
    const start = await broker.call("POST", "/v1/report", {
      agent_id: "ann",
      argv: ["tool", "x"],
      cwd: broker.project,
    });
    const { span_id: span = "" } = start.document as ReportReply;
    const end = (agent: string, exit: number) =>
      broker.call("POST", "/v1/report", { agent_id: agent, span_id: span, exit, signal: null });
    expect((await end("ben", 0)).status).toBe(404);
    expect((await end("ann", 3)).status).toBe(200);
    const again = await end("ann", 0);
    expect([again.status, (again.document as ErrorReply).error.code]).toEqual([404, "not_found"]);
    expect((await broker.span(span)).exit).toBe(3);
    const replayed = await broker.call("POST", `/v1/replay/${span}`, {});
    expect((replayed.document as ErrorReply).error.code).toBe("not_replayable");
  });

  test("nothing is charged for what runs outside", async () => {
    const before = await broker.operator("GET", "/v1/budgets/human");
    await shell("tool exit 0");
    await closed(["tool", "exit", "0"]);
    expect((await broker.operator("GET", "/v1/budgets/human")).document).toEqual(before.document);
  });

  test("`which -a` finds the program behind; status and removal tell and take what is a shim, and nothing else", async () => {
    const found = await shell("command -v tool; which -a tool");
    expect(found.stdout.trim().split("\n")).toEqual([
      join(broker.home, "shims/tool"),
      join(broker.home, "shims/tool"),
      join(bin, "tool"),
    ]);
    const status = await broker.cli(["shim", "status", "--json"], { env: { PATH: path() } });
    expect(JSON.parse(status.stdout)).toEqual({
      folder: join(broker.home, "shims"),
      first_on_path: true,
      shims: [{ name: "tool", state: "in force", real: join(bin, "tool") }],
    });
    broker.write(join(broker.home, "shims/own"), "mine");
    expect((await cli("install", "own", "../x", "node", "no-such-program")).code).toBe(1);
    expect((await cli("remove", "own")).code).toBe(1);
    expect((await cli("remove")).stdout).toBe("removed: tool\n");
    expect(readdirSync(join(broker.home, "shims")).filter((name) => !name.startsWith("."))).toEqual(["own"]);
    const made = await cli("install", "tool");
    expect(made.stdout).toContain(`export PATH='${join(broker.home, "shims")}':"$PATH"`);
  });
});

async function pendingId(broker: TestBroker): Promise<string> {
  for (;;) {
    const { document } = await broker.operator("GET", "/v1/approvals");
    const [first] = (document as { approvals: { approval_id: string }[] }).approvals;
    if (first !== undefined) return first.approval_id;
    await sleep(20);
  }
}

async function outputOf(child: ChildProcess): Promise<string> {
  let text = "";
  child.stdout?.on("data", (bytes: Buffer) => (text += bytes.toString()));
  await new Promise((resolve) => child.once("close", resolve));
  return text;
}
