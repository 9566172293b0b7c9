import { existsSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { call } from "../../api/client/client.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { SAME, leftLayers, notReplayed, put, replayed } from "../support/broker/replays.ts";
import { GIT, hostGit } from "../support/git/git.ts";
import { NetworkPlace, networkPolicy } from "../support/network/place.ts";
import { processesWith } from "../support/processes/processes.ts";
import { actors, runAs } from "../support/users/users.ts";

const POLICY = `id: default
name: Replays
mode: enforce
fs:
  write: ["$PROJECT/**"]
`;

const CONFIG = "agents:\n  ann: {}\n  bob: {}\n";

describe.each(actors())("replays that would do harm, as $kind", (actor) => {
  let broker: TestBroker;
  let outside: string;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY }, config: CONFIG });
    outside = (await runAs(actor, ["mktemp", "-d", join(actor.home, "sb-outside-XXXXXX")])).stdout.trim();
  });
  afterAll(async () => {
    rmSync(outside, { recursive: true, force: true });
    await broker.stop();
  });
  beforeEach(() => setPolicy(POLICY));

  const inProject = (name: string): string => join(broker.project, name);
  const setPolicy = (text: string): void => put(broker, join(broker.home, "policies/default.yaml"), text);
  const asAgent = (agent: string, path: string, body: object) =>
    call(join(broker.home, `sock/agents/${agent}.sock`), "POST", path, body);

  test("effects on files are not repeated: neither in the project, nor in git, nor where the policy lets a command write", async () => {
    setPolicy(POLICY.replace('"$PROJECT/**"', `"$PROJECT/**", "${outside}/**"`));
    hostGit(actor, broker.project, "init", "-q");
    put(broker, inProject("file"), "1\n");
    const cmd = `echo x >> log; echo y >> '${outside}/log' || echo refused; ${GIT} add file; ${GIT} commit -qm one --allow-empty; touch /tmp/here; true`;
    const { span_id: span } = await broker.run(cmd);
    const before = state();
    expect(before).toMatchObject({ log: "x\n", outside: "y\n", commits: "1" });
    await replayed(broker, span);
    const { code } = await broker.cli(["replay", span, "--times", "2"]);
    expect(code).toBe(1);
    expect(state()).toEqual(before);
    // A world that is warm for the next isolated command has layers too, and nothing has run in it.
    const ran = broker.spans().flatMap(({ world_id: world, span_id: id }) => [world, id]);
    expect((await leftLayers(broker)).filter((name) => ran.includes(name))).toEqual([]);
    // The twin: who wants the effect runs the command.
    await broker.run(cmd);
    expect(state()).toMatchObject({ log: "x\nx\n", outside: "y\ny\n", commits: "2" });
  });

  const state = (): object => ({
    log: readFileSync(inProject("log"), "utf8"),
    outside: readFileSync(join(outside, "log"), "utf8"),
    commits: hostGit(actor, broker.project, "rev-list", "--count", "HEAD"),
    names: readdirSync(broker.project).sort(),
    here: existsSync("/tmp/here"),
  });

  test("nobody applies what a replay changed, also while its layers are being removed", async () => {
    const { span_id: span } = await broker.run("mkdir many; for i in $(seq 300); do : > many/$i; done");
    rmSync(inProject("many"), { recursive: true });
    const { replay_span_id: again } = await replayed(broker, span);
    for (const call of ["apply", "undo", "discard"] as const) {
      const { status, document } = await broker.operator("POST", `/v1/${call}/${again}`, {});
      expect({ status, document }).toMatchObject({ status: 404, document: { error: { code: "not_found" } } });
      expect(JSON.stringify(document)).toContain("the span is a replay");
    }
    expect(existsSync(inProject("many"))).toBe(false);
    expect(await leftLayers(broker)).toEqual([]);
  });

  test("in observe mode stray writes of a replay stay in its world", async () => {
    setPolicy(POLICY.replace("enforce", "observe"));
    const { span_id: span } = await broker.run(`echo z > '${outside}/stray' && cat '${outside}/stray'`);
    const reply = await replayed(broker, span);
    expect(reply).toMatchObject({ matches: SAME });
    expect(existsSync(join(outside, "stray"))).toBe(false);
    // The warm world of the session keeps its own strays as long as it lives.
    const { world_id: world } = await broker.span(reply.replay_span_id);
    const left = await leftLayers(broker);
    expect(left).not.toContain(world);
    expect(left).not.toContain(reply.replay_span_id);
  });

  test("the policy of today decides: denied, or to be asked, is not replayed, whatever was allowed once", async () => {
    const { span_id: span } = await broker.run("touch mark-1 && echo made");
    rmSync(inProject("mark-1"));
    setPolicy(`${POLICY}commands:\n  denied: ["touch *"]\n`);
    const denied = await notReplayed(broker, span);
    expect(denied).toMatchObject({
      status: 403,
      code: "policy_denied",
      exit: 126,
      rule: { list: "commands.denied", pattern: "touch *" },
    });
    expect(await broker.span(denied.span_id ?? "")).toMatchObject({
      event_type: "violation",
      parent_span: span,
      given: { replays: span },
    });
    setPolicy(`${POLICY}commands:\n  ask: ["touch *"]\n`);
    expect(await notReplayed(broker, span)).toMatchObject({
      status: 403,
      code: "policy_denied",
      message: expect.stringContaining("a replay cannot ask"),
    });
    expect((await broker.operator("GET", "/v1/approvals")).document).toMatchObject({ approvals: [] });
    setPolicy("id: default\nname: [broken\n");
    setPolicy(POLICY);
    expect(await replayed(broker, span)).toMatchObject({ matches: SAME });
    expect(existsSync(inProject("mark-1"))).toBe(false);
  });

  test("an agent cannot escape today's policy by naming another one; the operator can, and is told both verdicts", async () => {
    const { document } = await asAgent("ann", "/v1/execute", { cwd: broker.project, cmd: "touch mark-2" });
    const { span_id: span } = document as { span_id: string };
    const lax = POLICY.replace("id: default", "id: lax");
    setPolicy(`${POLICY}commands:\n  denied: ["touch *"]\n`);
    put(broker, join(broker.home, "policies/lax.yaml"), lax);
    expect(await asAgent("ann", `/v1/replay/${span}`, { policy: "lax" })).toMatchObject({
      status: 400,
      document: { error: { code: "unknown_profile" } },
    });
    put(broker, join(broker.home, "policies/lax.yaml"), `${lax}selectable: true\n`);
    expect(await asAgent("ann", `/v1/replay/${span}`, { policy: "lax" })).toMatchObject({
      status: 403,
      document: { error: { code: "policy_denied" } },
    });
    expect(await broker.operator("POST", `/v1/replay/${span}`, { policy: "lax" })).toMatchObject({
      status: 200,
      document: { verdicts: { recorded: "allow", now: "allow" }, results: { now: { policy_id: "lax" } } },
    });
  });

  test("another agent's span is unknown, and a replay counts for its agent's budget", async () => {
    const { document } = await asAgent("bob", "/v1/execute", { cwd: broker.project, cmd: "echo private" });
    const { span_id: span } = document as { span_id: string };
    const foreign = await asAgent("ann", `/v1/replay/${span}`, {});
    expect(foreign).toMatchObject({ status: 404, document: { error: { code: "not_found" } } });
    expect(await broker.call("POST", `/v1/replay/${span}`, {})).toMatchObject({ status: 404 });
    expect(JSON.stringify(foreign.document)).not.toContain("private");
    expect(await asAgent("bob", `/v1/replay/${span}`, {})).toMatchObject({ status: 200 });
    setPolicy(`${POLICY}budgets:\n  default: { max_execs: 3 }\n`);
    expect(await asAgent("bob", `/v1/replay/${span}`, {})).toMatchObject({ status: 200 });
    expect(await asAgent("bob", `/v1/replay/${span}`, {})).toMatchObject({
      status: 429,
      document: { error: { code: "budget_exceeded", budget: { name: "max_execs" } } },
    });
  });

  test("what nobody may read has no name in the drift either", async () => {
    setPolicy(POLICY.replace("fs:", 'fs:\n  deny_read: ["vault", "**/*.key"]'));
    const { span_id: span } = await broker.run("echo drift");
    for (const name of ["vault/plan-b.txt", "some.key", "seen.txt"]) put(broker, inProject(name), "x");
    const reply = await replayed(broker, span);
    const told = JSON.stringify(reply.drift);
    expect(told).toContain("seen.txt");
    expect(told).not.toMatch(/vault|plan-b|some\.key/);
  });

  test("secrets that a command prints are in no sample, and so in no diff", async () => {
    const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    put(broker, inProject("out.txt"), `one\ntoken ${secret}\n`);
    const { span_id: span } = await broker.run("cat out.txt");
    put(broker, inProject("out.txt"), `two\ntoken ${secret}\n`);
    const reply = await replayed(broker, span);
    expect(reply.differences.stdout).toContain("-one\n+two\n token [redacted:");
    expect(JSON.stringify(reply)).not.toContain(secret);
    // Long enough for the samples to be committed.
    await sleep(1500);
    for (const name of readdirSync(join(broker.home, "db")))
      expect(readFileSync(join(broker.home, "db", name)).includes(secret), name).toBe(false);
  });

  test("escape sequences in outputs, names and drift do not reach the terminal", async () => {
    put(broker, inProject("esc.txt"), "a\x1b[2Jb\n");
    const { span_id: span } = await broker.run("cat esc.txt");
    put(broker, inProject("esc.txt"), "c\x1b]0;title\x07\n");
    put(broker, inProject("na\x1b[31mme"), "x");
    const { stdout, stderr } = await broker.cli(["replay", span]);
    expect(stdout).toContain("\\x1b[2J");
    // oxlint-disable-next-line no-control-regex
    expect(`${stdout}${stderr}`).not.toMatch(/[\x1b\x07]/);
  });

  test("what a replayed command leaves running ends with it, also when its client goes away or the broker is killed", async () => {
    const { span_id: span } = await broker.run("sleep 61.125 & sleep 0.3");
    await replayed(broker, span);
    expect(processesWith("61.125")).toEqual([]);
    const leaving = new AbortController();
    const { span_id: slow } = await broker.run("test -e go && sleep 63.125; echo");
    put(broker, inProject("go"), "");
    const gone = broker.call("POST", `/v1/replay/${slow}`, {}, leaving.signal).catch(() => "gone");
    await expect.poll(() => processesWith("63.125").length).toBeGreaterThan(0);
    leaving.abort();
    await gone;
    await expect.poll(() => processesWith("63.125"), { timeout: 5000 }).toEqual([]);

    const killed = broker.call("POST", `/v1/replay/${slow}`, {}).catch(() => "killed");
    await expect.poll(() => processesWith("63.125").length).toBeGreaterThan(0);
    await broker.kill("SIGKILL");
    await killed;
    broker = await broker.again();
    await expect.poll(() => processesWith("63.125"), { timeout: 5000 }).toEqual([]);
    const lost = broker.spans().findLast((line) => line.outcome === "lost");
    expect(lost).toMatchObject({ given: { replays: slow } });
    expect((await notReplayed(broker, lost?.span_id ?? "")).message).toContain("its end is unknown");
    expect(await leftLayers(broker)).toEqual([]);
  });
});

const NAME = "registry.example.test";

describe.each(actors())("replays and the network, as $kind", (actor) => {
  let place: NetworkPlace;
  beforeAll(async () => {
    place = await NetworkPlace.open(actor, { default: networkPolicy([NAME]) });
  });
  afterAll(() => place.close());

  const setPolicy = (text: string): void =>
    put(place.broker, join(place.broker.home, "policies/default.yaml"), text);

  test("a replay reaches what the policy of today allows: what it allowed once no packet goes to", async () => {
    const { broker, internet } = place;
    const cmd = `curl -sS --max-time 5 -o /dev/null -w '%{http_code}\\n' http://${NAME}/`;
    const ran = await broker.run(cmd);
    expect(ran).toMatchObject({ exit: 0 });
    // The twin: it is allowed still, so the replay reaches it as the command did.
    const allowed = await internet.during(() => replayed(broker, ran.span_id));
    expect(allowed.result).toMatchObject({ matches: SAME });
    expect(allowed.seen.connections.length).toBeGreaterThan(0);

    setPolicy(networkPolicy(["other.example.test"]));
    const refused = await internet.during(() => replayed(broker, ran.span_id));
    expect(refused.seen.connections).toEqual([]);
    expect(refused.seen.questions).toEqual([]);
    expect(refused.result).toMatchObject({ matches: { exit: false } });
    expect(refused.result.drift.map(({ what }) => what)).toContain("policy_hash");
  });

  test("under a policy that the operator names its network holds, and not the assigned one's", async () => {
    const { broker, internet } = place;
    setPolicy(networkPolicy([NAME]));
    put(
      broker,
      join(broker.home, "policies/offline.yaml"),
      networkPolicy([]).replace("id: default", "id: offline"),
    );
    const ran = await broker.run(`curl -sS --max-time 5 -o /dev/null http://${NAME}/`);
    expect(ran).toMatchObject({ exit: 0 });
    const { result, seen } = await internet.during(() =>
      broker.operator("POST", `/v1/replay/${ran.span_id}`, { policy: "offline" }),
    );
    expect(result).toMatchObject({ status: 200, document: { matches: { exit: false } } });
    expect(seen.connections).toEqual([]);
    setPolicy(networkPolicy([]));
    put(
      broker,
      join(broker.home, "policies/online.yaml"),
      networkPolicy([NAME]).replace("id: default", "id: online"),
    );
    const online = await internet.during(() =>
      broker.operator("POST", `/v1/replay/${ran.span_id}`, { policy: "online" }),
    );
    expect(online.result).toMatchObject({ status: 200, document: { matches: { exit: true } } });
    expect(online.seen.connections.length).toBeGreaterThan(0);
  });
});
