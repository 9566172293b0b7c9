import { chmodSync, existsSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { ReplayReply } from "../../schemas/generated/types.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { REPLAY_POLICY, SAME, leftLayers, notReplayed, put, replayed } from "../support/broker/replays.ts";
import { hostGit } from "../support/git/git.ts";
import { actors } from "../support/users/users.ts";

describe.each(actors())("replays, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, {
      policies: { default: REPLAY_POLICY },
    });
  });
  afterAll(() => broker.stop());
  beforeEach(() => setPolicy(REPLAY_POLICY));

  const inProject = (name: string): string => join(broker.project, name);
  const setPolicy = (text: string): void => put(broker, join(broker.home, "policies/default.yaml"), text);

  test("an isolated command does the same again, and so does its replay", async () => {
    put(
      broker,
      inProject("held.sh"),
      "mkdir out; echo 1 > out/a; echo 2 > b; echo done; echo words >&2; exit 3",
    );
    const { span_id: span } = await broker.run("sh held.sh");
    const reply = await replayed(broker, span);
    expect(reply).toMatchObject({
      span_id: span,
      matches: { ...SAME, fs_diff: true },
      verdicts: { recorded: "isolate", now: "isolate" },
      results: { now: { exit: 3, fs_diff: { writes: ["b", "out/a"], dirs: ["out"], held: false } } },
      drift: [],
      notes: [],
    });
    expect(existsSync(inProject("b"))).toBe(false);
    expect(await broker.span(reply.replay_span_id)).toMatchObject({
      parent_span: span,
      replayable: true,
      given: { form: "sh", replays: span },
    });
    const again = await replayed(broker, reply.replay_span_id);
    expect(again).toMatchObject({ matches: { ...SAME, fs_diff: true }, drift: [] });
    expect(await leftLayers(broker)).toEqual([span]);
  });

  test("outputs that were one are one again", async () => {
    const cmd = "for i in 1 2 3 4 5; do echo out; echo err >&2; done";
    const { span_id: span } = await broker.run({ cmd, outputs: "together" });
    expect(await replayed(broker, span)).toMatchObject({ matches: SAME, results: { now: { exit: 0 } } });
  });

  test("a command that wrote to the project directly writes to an overlay when it is replayed, and nothing of that stays", async () => {
    const { span_id: span } = await broker.run("echo line >> log; rm -f gone; wc -l < log");
    expect(readFileSync(inProject("log"), "utf8")).toBe("line\n");
    const reply = await replayed(broker, span);
    expect(readFileSync(inProject("log"), "utf8")).toBe("line\n");
    expect(reply).toMatchObject({
      matches: { exit: true, stdout: false, stderr: true },
      results: { now: { fs_diff: { mods: ["log"] } } },
    });
    expect(reply.differences.stdout).toContain("-1\n+2\n");
    expect(await leftLayers(broker)).not.toContain(reply.replay_span_id);
  });

  test("in a tree that is put back as it was, a direct command's changes are those of its replay on an overlay, by list and tree hash", async () => {
    const restore = (): void => {
      rmSync(inProject("tree"), { recursive: true, force: true });
      for (const name of ["kept", "edited", "gone", "moved", "opened"])
        put(broker, inProject(`tree/${name}`), `${name}\n`);
      put(broker, inProject("tree/sub/deep"), "deep\n");
      chmodSync(inProject("tree/kept"), 0o644);
    };
    const cmds = [
      "echo new > tree/new; echo more >> tree/edited; rm tree/gone",
      "mv tree/moved tree/elsewhere; mkdir -p tree/a/b; echo x > tree/a/b/c; ln -s edited tree/link",
      "chmod 755 tree/kept; : >> tree/opened; cat tree/edited > /dev/null",
      "rm -r tree/sub; echo file > tree/sub; rm tree/edited; mkdir tree/edited; touch tree/edited/x",
    ];
    for (const cmd of cmds) {
      restore();
      const { span_id: span } = await broker.run(cmd);
      restore();
      const reply = await replayed(broker, span);
      expect(reply.matches, cmd).toMatchObject(SAME);
      const recorded = reply.results.recorded.fs_diff;
      const expected = recorded?.truncated === true ? null : true;
      expect(
        reply.matches.fs_diff,
        `${cmd}: ${JSON.stringify([reply.differences.fs_diff, reply.notes])}`,
      ).toBe(expected);
    }
    rmSync(inProject("tree"), { recursive: true });
  });

  test("a command that writes the bytes that are there is not said to do something else", async () => {
    put(broker, inProject("built"), "same\n");
    const { span_id: span } = await broker.run("echo same > built");
    const { code, stdout } = await broker.cli(["replay", span]);
    expect(stdout).toContain("gave the same result, as far as it could be compared");
    expect(stdout).toContain("perhaps to write the same bytes again");
    expect(code).toBe(1);
    // The twin: what it left is not what it would write now.
    put(broker, inProject("built"), "other\n");
    expect(await replayed(broker, span)).toMatchObject({ matches: { fs_diff: true } });
  });

  test("what it reads now counts: an edited file is another output, exit 1, and drift that names it", async () => {
    put(broker, inProject("notes.txt"), "first\nold\nlast\n");
    const { span_id: span } = await broker.run("cat notes.txt");
    expect(await replayed(broker, span)).toMatchObject({ matches: SAME, drift: [] });
    put(broker, inProject("notes.txt"), "first\nnew\nlast\n");
    const { code, stdout } = await broker.cli(["replay", span]);
    expect(code).toBe(1);
    expect(stdout).toContain("stdout    different");
    expect(stdout).toMatch(/-old\n\s+\+new/);
    expect(stdout).toMatch(/drift {5}files: .*notes\.txt/);
    const json = await broker.cli(["replay", span, "--json"]);
    expect(json.code).toBe(1);
    expect((JSON.parse(json.stdout) as ReplayReply).matches).toMatchObject({ exit: true, stdout: false });
  });

  test("shell, words, folder, time-out and ending are as they were", async () => {
    put(broker, inProject("sub/here"), "x");
    const bash = await broker.run({
      cmd: "shopt -q extglob; echo $BASH_VERSION; pwd",
      shell: "bash",
      cwd: inProject("sub"),
    });
    const words = await broker.run({ argv: ["printf", "%s|", "a b", '["x"]', "$HOME"] });
    const killed = await broker.run("kill -TERM $$");
    const late = await broker.run({ cmd: "sleep 60", timeout_ms: 300 });
    for (const { span_id: span } of [bash, words, killed, late])
      expect(await replayed(broker, span), span).toMatchObject({ matches: SAME });
    expect((await replayed(broker, late.span_id)).results.now).toMatchObject({ timed_out: true });
  });

  test("changes that were not listed are not called equal, and the command line says so with exit 1", async () => {
    const { span_id: span } = await broker.run("true");
    const recorded = (await broker.span(span)).fs_diff;
    const reply = await replayed(broker, span);
    const { code, stdout } = await broker.cli(["replay", span]);
    if (recorded?.truncated === true) {
      expect(reply.matches.fs_diff).toBeNull();
      expect(reply.notes.join()).toContain("is incomplete, so they cannot be compared");
      expect([code, stdout]).toEqual([1, expect.stringContaining("not compared")]);
    } else {
      expect(reply.matches.fs_diff).toBe(true);
      expect([code, stdout]).toEqual([0, expect.stringContaining("gave the same result")]);
    }
  });

  test("several runs show whether a command is deterministic", async () => {
    put(broker, inProject("held.sh"), "echo same > made; echo said");
    const { span_id: steady } = await broker.run("sh held.sh");
    const good = await broker.cli(["replay", steady, "--times", "3"]);
    expect([good.code, good.stdout]).toEqual([0, expect.stringContaining("3 runs gave the same result")]);
    const { span_id: dice } = await broker.run("cat /proc/sys/kernel/random/uuid");
    const bad = await broker.cli(["replay", dice, "--times", "3", "--json"]);
    expect(bad.code).toBe(1);
    expect(JSON.parse(bad.stdout)).toMatchObject({ alike: false, times: 3, runs: [{}, {}, {}] });
    const none = await broker.cli(["replay", dice, "--times", "0"]);
    expect([none.code, none.stderr]).toEqual([125, expect.stringContaining("1 to 1000")]);
  });

  test("what a span does not keep is named, and its replay's caller may send it", async () => {
    const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    const cmd = `printf '${secret}' | wc -c`;
    const { span_id: redacted } = await broker.run(cmd);
    expect(await notReplayed(broker, redacted)).toMatchObject({
      status: 409,
      code: "not_replayable",
      message: expect.stringContaining("github-token"),
    });
    expect(await replayed(broker, redacted, { cmd })).toMatchObject({ matches: SAME });
    expect((await notReplayed(broker, redacted, { cmd: "printf other" })).message).toContain(
      "not the recorded one",
    );

    const env = { GREETING: "hello" };
    const { span_id: variables } = await broker.run({ cmd: "echo $GREETING; cat", env, stdin_b64: "aGk=" });
    const missing = await notReplayed(broker, variables);
    expect(missing).toMatchObject({ status: 409, code: "not_replayable" });
    expect(missing.message).toContain("'env'");
    expect(missing.message).toContain("'stdin_b64'");
    const supplied = await replayed(broker, variables, { env, stdin_b64: "aGk=" });
    expect(supplied).toMatchObject({ matches: SAME, drift: [] });
    const words = ["replay", variables, "--env", "GREETING=hello", "--stdin"];
    expect((await broker.cli(words, { stdin: "hi" })).stdout).toMatch(/stdout +the same/);
    expect((await broker.cli(["replay", redacted, "--", cmd])).stdout).toMatch(/stdout +the same/);
    expect((await broker.cli(["replay", variables])).stderr).toContain("its variables were not kept");
    const otherwise = await replayed(broker, variables, { env: { GREETING: "bye" }, stdin_b64: "aGk=" });
    expect(otherwise).toMatchObject({ matches: { stdout: false }, drift: [{ what: "env_hash" }] });
  });

  test("what never ran to its end cannot be compared, and the answer says why", async () => {
    setPolicy(REPLAY_POLICY.replace("commands:", 'commands:\n  denied: ["touch *"]'));
    const { span_id: denied = "" } = await broker.refused({ cmd: "touch x" });
    setPolicy(REPLAY_POLICY);
    const kept = await broker.run({ cmd: "sleep 30 & echo", background: "keep" });
    const failed = await broker.post({ argv: ["true"], cwd: inProject("sub"), background: "kill" });
    expect(failed.status).toBe(200);
    const words = async (span: string): Promise<string> => (await notReplayed(broker, span)).message;
    expect(await words(denied)).toContain("never ran (policy_denied)");
    expect(await words(kept.span_id)).toContain("kept processes running");
    const leaving = new AbortController();
    const gone = broker.post({ cmd: "sleep 20", agent_id: "leaver" }, leaving.signal).catch(() => "gone");
    await expect.poll(() => broker.spans().some((span) => span.agent_id === "leaver")).toBe(true);
    const started = broker.spans().find((span) => span.agent_id === "leaver")?.span_id ?? "";
    expect(await words(started)).toContain("still running");
    leaving.abort();
    await gone;
    await expect.poll(async () => (await broker.span(started)).outcome).toBe("cancelled");
    expect(await words(started)).toContain("client disconnected");
    expect(await notReplayed(broker, "spn_none")).toMatchObject({ status: 404, code: "not_found" });
    expect(await notReplayed(broker, started, { times: 2 })).toMatchObject({ status: 400 });
  });

  test("a folder that is gone is said to be gone", async () => {
    put(broker, inProject("soon/file"), "x");
    const { span_id: span } = await broker.run({ cmd: "ls", cwd: inProject("soon") });
    rmSync(inProject("soon"), { recursive: true });
    expect(await notReplayed(broker, span)).toMatchObject({
      code: "not_replayable",
      message: expect.stringContaining("soon"),
    });
  });
});

describe.each(actors())("replays under another policy, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: REPLAY_POLICY } });
  });
  afterAll(() => broker.stop());

  const inProject = (name: string): string => join(broker.project, name);

  test("under another policy both verdicts and the difference of the diffs are shown, and a no with its rule", async () => {
    put(broker, inProject("plan.txt"), "plan\n");
    put(broker, inProject("held.sh"), "echo 1 > x; cat plan.txt > copy || rm copy");
    const { span_id: span } = await broker.run("sh held.sh");
    const plain = REPLAY_POLICY.replace("id: default", "id: other").replace(
      'isolated: ["sh held.sh"]',
      "isolated: []",
    );
    put(broker, join(broker.home, "policies/other.yaml"), plain);
    const other = await broker.cli(["replay", span, "--policy", "other"]);
    expect(other.stdout).toContain("verdict   isolate (default) → allow (other)");
    expect(other.code).toBe(0);
    put(
      broker,
      join(broker.home, "policies/other.yaml"),
      plain.replace("fs:", 'fs:\n  deny_read: ["$PROJECT/plan.txt"]'),
    );
    const blind = await replayed(broker, span, { policy: "other" }, "operator");
    expect(blind).toMatchObject({
      matches: { stderr: false, fs_diff: false },
      verdicts: { recorded: "isolate", now: "allow" },
      differences: { fs_diff: { only_recorded: [{ kind: "write", path: "copy" }], only_now: [] } },
      results: { recorded: { policy_id: "default" }, now: { policy_id: "other" } },
    });
    expect((await broker.span(blind.replay_span_id)).given).toMatchObject({ replays: span, under: "other" });
    const deny = plain.replace("isolated: []", 'denied: ["sh held.sh"]');
    put(broker, join(broker.home, "policies/other.yaml"), deny);
    const denied = await broker.cli(["replay", span, "--policy", "other"]);
    expect(denied.code).toBe(126);
    expect(denied.stdout).toContain("isolate (default) → refused (other)");
    expect(denied.stderr).toContain("'sh held.sh' matches 'sh held.sh' in commands.denied");
    expect((await broker.cli(["replay", span, "--policy", "none-such"])).code).toBe(125);
  });
});

const POLICY = `id: default
name: Surroundings
mode: enforce
fs: { write: ["$PROJECT/**"] }
world: { env: [LANG, LC_ALL, TZ] }
`;

describe.each(actors())("what a replay restores and what it lists, as $kind", (actor) => {
  let broker: TestBroker;
  const usual = `${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`;

  const start = (environment: Readonly<Record<string, string>>, folder?: string): Promise<TestBroker> =>
    TestBroker.start(actor, {
      policies: { default: POLICY },
      environment,
      ...(folder === undefined ? {} : { folder }),
    });
  afterEach(() => broker.stop());

  test("the recorded PATH and locale hold for the replay, also when today's are others, which is listed", async () => {
    broker = await start({ PATH: `${usual}:/opt/then`, LANG: "C.UTF-8", TZ: "UTC" });
    const { span_id: span } = await broker.run(
      'echo "$PATH" "$LANG" "$LC_ALL"; umask; pwd; locale charmap 2>&1',
    );
    const supplied = { PATH: `/opt/mine:${usual}` };
    const own = await broker.run({ cmd: 'echo "$PATH"', env: supplied });
    await broker.kill("SIGTERM");
    broker = await start({ PATH: `${usual}:/opt/now`, LANG: "C", LC_ALL: "C" }, broker.folder);
    const reply = await replayed(broker, span);
    expect(reply.matches, JSON.stringify(reply.differences)).toMatchObject(SAME);
    const drift = Object.fromEntries(reply.drift.map(({ what, recorded, now }) => [what, [recorded, now]]));
    expect(drift).toMatchObject({
      path: [`${usual}:/opt/then`, `${usual}:/opt/now`],
      locale: ["C.UTF-8", "C"],
    });
    // TZ is a variable that no span keeps: only its hash shows that it is gone.
    expect(drift["env_hash"]).toBeDefined();
    const again = await replayed(broker, reply.replay_span_id);
    expect(again).toMatchObject({ matches: SAME });
    expect(await replayed(broker, own.span_id, { env: supplied })).toMatchObject({ matches: SAME });
  });

  test("a credential in the broker's own locale or PATH is in no span, and a replay wants them sent", async () => {
    const token = `ghp_${"a1B2c3".repeat(6)}`;
    broker = await start({ PATH: `${usual}:/opt/${token}`, LC_ALL: token });
    const { span_id: id } = await broker.run('printf "%s" "$LC_ALL"');
    const span = await broker.span(id);
    expect(JSON.stringify(broker.spans())).not.toContain(token);
    expect(span).toMatchObject({
      replayable: false,
      replay_context: { locale: "[redacted:github-token]", path: `${usual}:/opt/[redacted:github-token]` },
    });
    expect(span.redacted.map(({ place }) => place).sort()).toEqual([
      "replay_context.locale",
      "replay_context.path",
    ]);
    const refused = await broker.call("POST", `/v1/replay/${id}`, {});
    expect(refused.status).toBe(409);
    expect(JSON.stringify(refused.document)).toMatch(/its PATH was not kept.*its locale was not kept/);
    const reply = await replayed(broker, id, { env: { PATH: `${usual}:/opt/${token}`, LC_ALL: token } });
    expect(reply.matches, JSON.stringify(reply.differences)).toMatchObject(SAME);
    expect(JSON.stringify(reply)).not.toContain(token);
    expect(JSON.stringify(broker.spans())).not.toContain(token);
  });

  test("commits, edits and policies that changed are listed, and a commit that changed nothing else is no difference", async () => {
    broker = await start({});
    hostGit(actor, broker.project, "init", "-q");
    put(broker, join(broker.project, "a.txt"), "1\n");
    hostGit(actor, broker.project, "add", "a.txt");
    hostGit(actor, broker.project, "commit", "-qm", "one");
    await broker.run("true");
    const known = async (): Promise<string> => {
      const { span_id: span } = await broker.run("cat a.txt");
      const hash = (await broker.span(span)).replay_context?.dirty_hash ?? null;
      return hash === null ? "" : span;
    };
    let span = "";
    await expect.poll(async () => (span = await known()), { timeout: 20_000, interval: 400 }).not.toBe("");
    expect((await replayed(broker, span)).drift).toEqual([]);

    hostGit(actor, broker.project, "commit", "-qm", "two", "--allow-empty");
    put(broker, join(broker.home, "policies/default.yaml"), POLICY.replace("Surroundings", "Others"));
    const moved = await replayed(broker, span);
    expect(moved).toMatchObject({ matches: SAME });
    expect(moved.drift.map(({ what }) => what).sort()).toEqual(["policy_hash", "project_commit"]);

    put(broker, join(broker.project, "a.txt"), "22\n");
    const edited = await replayed(broker, span);
    expect(edited).toMatchObject({ matches: { stdout: false } });
    expect(edited.drift.map(({ what }) => what).sort()).toEqual([
      "dirty_hash",
      "files",
      "policy_hash",
      "project_commit",
    ]);
  });
});
