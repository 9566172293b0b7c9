import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors, spawnAs } from "../support/users/users.ts";
import { eventually, TestBroker } from "../support/broker/broker.ts";
import { installationFor } from "../support/broker/installation.ts";

const POLICY = "id: default\nname: Trace\nmode: enforce\ncommands: { denied: ['false-friend *'] }\n";

describe.each(actors())("substrate trace, as $kind", (actor) => {
  let broker: TestBroker;
  let ran: string;
  let denied: string;

  beforeAll(async () => {
    broker = await TestBroker.start(actor, {
      policies: { default: POLICY },
      config: "trace: { file_mib: 0.01 }\n",
    });
    const first = await broker.run({ agent_id: "ann", cmd: "cd / && echo one" });
    ran = first.span_id;
    await broker.run({ agent_id: "ben", cmd: "exit 3" });
    denied = (await broker.refused({ agent_id: "ben", cmd: "false-friend x" })).span_id ?? "";
    await broker.run({
      agent_id: "ann",
      cmd: "curl http://x/ -H 'a: blue-parrot-42' || true",
      env: { MY_TOKEN: "blue-parrot-42" },
    });
  });

  afterAll(() => broker.stop());

  async function list(...words: string[]): Promise<readonly string[]> {
    const { stdout, code, stderr } = await broker.cli(["trace", "list", ...words, "--json"]);
    expect(code, stderr).toBe(0);
    return (JSON.parse(stdout) as { spans: { span_id: string }[] }).spans.map(({ span_id: id }) => id);
  }

  test("lists by agent, verdict, outcome and time, and refuses a word that there is not", async () => {
    expect(await list("--agent", "ben", "--verdict", "deny")).toEqual([denied]);
    expect(await list("--agent", "ann", "--verdict", "deny")).toEqual([]);
    expect(await list("--outcome", "refused")).toEqual([denied]);
    expect(await list("--agent", "ann", "--since", "1h")).toContain(ran);
    expect(await list("--since", "2100-01-01")).toEqual([]);
    const wrong = await broker.cli(["trace", "list", "--outcome", "fine"]);
    expect(wrong).toMatchObject({ code: 125, stdout: "" });
    expect(wrong.stderr).toContain("must be one of running, ended");
  });

  test("shows a span with what is below it as a tree, and as JSON", async () => {
    const { stdout } = await broker.cli(["trace", ran, "--tree"]);
    expect(stdout).toMatch(new RegExp(`^\\S+ {2}${ran} .*\\n└─ .*cd /`));
    const json = await broker.cli(["trace", "show", ran, "--tree", "--json"]);
    expect(JSON.parse(json.stdout)).toMatchObject({
      span: { span_id: ran },
      children: [{ span: { event_type: "builtin_command", parent_span: ran }, children: [] }],
    });
    const shown = (await broker.cli(["trace", "show", denied])).stdout;
    expect(shown).toMatch(/verdict +deny/);
    expect(shown).toMatch(/because +Policy 'default' denies this command.*\(policy_denied\)/);
    expect((await broker.cli(["trace", "spn_none", "--tree"])).code).toBe(125);
  });

  test("'last' is the newest command in this folder, below it or above it, in 'trace' and in 'replay'", async () => {
    const { span_id: first } = await broker.run("true the-first");
    const { span_id: id } = await broker.run("true the-last");
    const said = `substrate: ${id}  true the-last\n`;
    expect(await broker.cli(["trace", "last"])).toMatchObject({ code: 0, stderr: said });
    expect((await broker.cli(["trace", "last", "--tree"])).stdout).toContain("true the-last");
    const replayed = await broker.cli(["replay", "last"]);
    expect([replayed.code, replayed.stderr]).toEqual([0, said]);
    // The replay is a command too: one of it would be of no use.
    expect((await broker.cli(["replay", "last"])).stderr).toBe(said);
    expect(await broker.cli(["replay", first])).toMatchObject({ code: 0, stderr: "" });
    const elsewhere = await broker.cli(["trace", "last"], { cwd: "/proc" });
    expect(elsewhere).toMatchObject({
      code: 125,
      stderr: expect.stringContaining("is a command in '/proc'. Name a span"),
    });
  });

  test("has a value of a variable with such a name in none of its files", async () => {
    await expect
      .poll(() => broker.spans().filter(({ cmd }) => cmd?.includes("env.MY_TOKEN")).length)
      .toBeGreaterThan(1);
    expect(JSON.stringify(broker.spans())).not.toContain("blue-parrot");
    const text = readFileSync(join(broker.home, "trace/trace.jsonl"), "latin1");
    expect(text).not.toContain("blue-parrot");
  });

  test("has it in no sentence about a refusal or a refused name either", async () => {
    const env = { MY_TOKEN: "blue-parrot-42" };
    const refused = await broker.refused({ agent_id: "cat", cmd: "false-friend blue-parrot-42", env });
    expect(refused.message).toContain("blue-parrot-42");
    const { stderr } = await broker.run({ agent_id: "cat", cmd: "getent hosts blue-parrot-42.test", env });
    expect(stderr).toContain("'blue-parrot-42.test' was not looked up");
    const spans = broker.spans().filter(({ agent_id: agent }) => agent === "cat");
    const said = spans.map(({ message }) => message ?? "").join("\n");
    expect(said).toContain("denies this command: 'false-friend [redacted:env.MY_TOKEN]'");
    expect(said).toContain("'[redacted:env.MY_TOKEN].test' was not looked up");
    expect(JSON.stringify(spans)).not.toContain("blue-parrot");
  });

  test("shows a command of several lines below its first one, and tails it as JSON, whatever is in it", async () => {
    const cmd = "true\n  verdict   deny\u00a0(enforce)\u202e";
    const { span_id: id } = await broker.run({ agent_id: "dan", cmd });
    const { stdout } = await broker.cli(["trace", id]);
    expect(stdout.match(/^ {2}verdict /gm)).toHaveLength(1);
    expect(stdout).toContain("\n              verdict   deny\\xa0(enforce)");
    const tail = await broker.cli(["trace", "tail", "--no-follow", "--agent", "dan", "--json"]);
    const lines = tail.stdout.trimEnd().split("\n");
    expect(lines.map((line) => (JSON.parse(line) as { cmd: string }).cmd)).toContain(cmd);
    expect(tail.stdout).not.toMatch(/[\u00a0\u202e]/);
  });

  test("tail follows without being asked to", async () => {
    const { node, launcher } = await installationFor(actor);
    const tail = spawnAs(actor, [node, launcher, "trace", "tail", "-n", "1", "--json"], {
      cwd: broker.project,
      env: { SUBSTRATE_HOME: broker.home },
      stdio: ["ignore", "pipe", "inherit"],
    });
    let text = "";
    tail.stdout?.on("data", (data: Buffer) => {
      text += data.toString();
    });
    try {
      expect(await eventually(() => text !== "", 10_000)).toBe(true);
      await broker.run("echo written-while-it-follows");
      expect(await eventually(() => text.includes("written-while-it-follows"), 10_000)).toBe(true);
      expect(tail.exitCode).toBeNull();
    } finally {
      tail.kill("SIGKILL");
    }
  });

  test("tails the last lines of one agent, and ends when it is not to follow", async () => {
    const { stdout, code } = await broker.cli([
      "trace",
      "tail",
      "-n",
      "50",
      "--no-follow",
      "--agent",
      "ben",
      "--json",
    ]);
    expect(code).toBe(0);
    const agents = stdout
      .trimEnd()
      .split("\n")
      .map((line) => (JSON.parse(line) as { agent_id: string }).agent_id);
    expect(new Set(agents)).toEqual(new Set(["ben"]));
  });

  test("verify says when it has no head to compare the end with, and compares with one that is given", async () => {
    const home = join(broker.folder, "copied");
    for (const name of readdirSync(join(broker.home, "trace")))
      broker.write(join(home, "trace", name), readFileSync(join(broker.home, "trace", name), "utf8"));
    const verify = (...words: readonly string[]) =>
      broker.cli(["trace", "verify", ...words], { env: { SUBSTRATE_HOME: home } });
    const lines = (await verify()).stdout.trimEnd().split("\n");
    expect(lines.at(-1)).toMatch(/^ {2}end +not compared: no database here knows the last head/);
    const [, head = ""] = /head (sha256:\w+)/.exec(lines[0] ?? "") ?? [];
    expect(JSON.parse((await verify("--json")).stdout)).toMatchObject({ ok: true, head, heads_compared: 0 });
    const compared = await verify("--head", head);
    expect(compared).toMatchObject({ code: 0 });
    expect(compared.stdout).not.toContain("not compared");
    expect((await broker.cli(["trace", "verify"])).stdout).not.toContain("not compared");
  });

  test("verifies over the files that its settings make, and names a file that is gone", async () => {
    for (let number = 0; number < 12; number += 1) await broker.run(`echo ${number}`);
    await sleep(700);
    await broker.run("echo last");
    const good = await broker.cli(["trace", "verify", "--json"]);
    const result = JSON.parse(good.stdout) as { ok: boolean; files: number; head: string };
    expect(result).toMatchObject({ ok: true, dropped: null });
    expect(result.files).toBeGreaterThan(1);
    expect((await broker.cli(["trace", "verify", "--head", result.head])).code).toBe(0);
    expect((await broker.cli(["trace", "verify", "--head", "x"])).code).toBe(125);
    rmSync(join(broker.home, "trace/trace-0000000000000001.jsonl"));
    const bad = await broker.cli(["trace", "verify"]);
    expect(bad.code).toBe(1);
    expect(bad.stdout).toContain("the trace does not record that they were dropped");
  });

  test("verify finds that the whole trace was removed", async () => {
    const [trace, away] = [join(broker.home, "trace"), join(broker.home, "away")];
    renameSync(trace, away);
    mkdirSync(trace);
    try {
      const { stdout, code } = await broker.cli(["trace", "verify", "--json"]);
      expect(code).toBe(1);
      expect(JSON.parse(stdout)).toMatchObject({ ok: false, file: "trace.jsonl", line: 1, seq: 1 });
    } finally {
      rmSync(trace, { recursive: true });
      renameSync(away, trace);
    }
  });

  test("says of a replay that it is one, and of a command that its broker was killed in that it is lost", async () => {
    const { span_id: id } = await broker.run({ agent_id: "eve", cmd: "echo once" });
    await broker.cli(["replay", id]);
    const cut = broker.cli(["exec", "--agent", "eve", "--", "sleep 30"]);
    await expect.poll(async () => (await list("--outcome", "running")).length).toBe(1);
    expect((await broker.cli(["trace", "list", "-n", "1"])).stdout).toContain("  running  eve  sleep 30");
    await broker.kill("SIGKILL");
    const { code, stderr } = await cut;
    expect(code).toBe(125);
    expect(stderr).toMatch(/^substrate: The broker ended before it replied\..*\n$/);
    broker = await broker.again();
    const { stdout } = await broker.cli(["trace", "list", "--agent", "eve"]);
    expect(stdout).toContain("  lost  eve  sleep 30");
    expect(stdout).toContain("  exit 0  eve  replay  echo once");
    expect(stdout).toContain("  exit 0  eve  echo once");
  });
});

describe.each(actors().slice(0, 1))("a damaged database, as $kind", (actor) => {
  test("is named by verify and at the start, and moved away it is rebuilt from the trace", async () => {
    let broker = await TestBroker.start(actor, {});
    try {
      const { span_id: id } = await broker.run("echo kept");
      const database = join(broker.home, "db");
      await broker.kill("SIGTERM");
      truncateSync(join(database, "data.mdb"), 8192);
      const verified = await broker.cli(["trace", "verify"]);
      expect([verified.code, verified.stderr]).toEqual([0, ""]);
      expect(verified.stdout).toContain(`the database with the last head, in '${database}', is damaged`);
      const started = await broker.cli(["broker", "start"]);
      expect(started.code).toBe(125);
      expect(started.stderr).toContain("data.mdb' is damaged. Move the folder away");
      renameSync(database, join(broker.folder, "damaged"));
      broker = await broker.again();
      expect((await broker.cli(["trace", "show", id])).stdout).toContain("echo kept");
    } finally {
      await broker.stop();
    }
  });
});
