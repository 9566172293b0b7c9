import { chmodSync, mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors, runAs } from "../support/users/users.ts";
import { eventually, TestBroker } from "../support/broker/broker.ts";
import { installationFor, installationIn } from "../support/broker/installation.ts";

const OBSERVE = [
  "id: default",
  "name: Observes",
  "commands:",
  '  denied: ["touch forbidden*", "wc *"]',
  '  ask: ["touch asked*"]',
  '  isolated: ["touch apart*"]',
  "",
].join("\n");

describe.each(actors())("what lifts a refusal, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    const policy = [
      "id: default",
      "name: Refuses",
      "mode: enforce",
      'fs: { write: ["$PROJECT/**"], deny_write: ["$PROJECT/kept"] }',
      "net: { allowed: [allowed.example] }",
      'commands: { denied: ["wc *"] }',
      "",
    ].join("\n");
    broker = await TestBroker.start(actor, { policies: { default: policy } });
  });
  afterAll(() => broker.stop());

  test("stands beside it where a list allows too little, and not where one denies", async () => {
    const hintOf = async (cmd: string): Promise<string> => (await broker.refused({ cmd })).hint ?? "";
    expect(await hintOf("echo x > /usr/beside")).toContain("'substrate policy allow write PATH'");
    for (const cmd of ["echo x > kept", "wc -l x"]) expect(await hintOf(cmd)).not.toContain("policy allow");
    const { stderr } = await broker.run("getent hosts other.example");
    expect(stderr).toContain("'substrate policy allow net NAME'");
  });
});

describe.each(actors())("what a policy that observes would have done, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: OBSERVE } });
  });
  afterAll(() => broker.stop());

  test.each([
    ["touch forbidden", "would deny this command: 'touch forbidden' matches 'touch forbidden*'"],
    ["touch asked", "would ask a person before this command: 'touch asked' matches 'touch asked*'"],
    ["touch apart", "would hold this command's changes: 'touch apart' matches 'touch apart*'"],
  ])("exec of '%s' runs, and one line names the rule", async (command, words) => {
    const { code, stderr } = await broker.cli(["exec", "--", command]);
    expect(code).toBe(0);
    const line = `substrate: policy 'default' only observes; with 'mode: enforce' it ${words} in commands.`;
    expect(stderr.trimEnd().split("\n")).toEqual([expect.stringContaining(line)]);
    expect(stderr).toMatch(/\(default\.yaml:\d\)\n$/);
  });

  test("a program that the command starts by itself is told the same way, once", async () => {
    broker.write(join(broker.project, "count.sh"), "wc -c /dev/null\nwc -l /dev/null\nwc -c /dev/null\n");
    const { code, stderr } = await broker.cli(["exec", "--", "sh count.sh"]);
    expect(code).toBe(0);
    expect(stderr).toMatch(
      /^substrate: Policy 'default' only observes; with 'mode: enforce' it would refuse to start this program: '\/usr\/bin\/wc -c \/dev\/null' matches 'wc \*' in commands\.denied \(default\.yaml:\d\)/m,
    );
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  });

  test("what would have run all the same has no line", async () => {
    expect(await broker.cli(["exec", "--", "touch other"])).toMatchObject({ code: 0, stderr: "" });
  });
});

describe.each(actors())("a process kept in a world that ends for a new policy, as $kind", (actor) => {
  test("is named to the next command of its session, once, and the policy's other changes end nothing", async () => {
    const broker = await TestBroker.start(actor, { policies: { default: OBSERVE } });
    try {
      const policyFile = join(broker.home, "policies/default.yaml");
      await broker.run({ cmd: "sleep 600 &", background: "keep" });
      broker.write(policyFile, `${OBSERVE}  allowed: ["*"]\n`);
      expect(await broker.run("pgrep -c sleep")).toMatchObject({ stdout: "1\n", notices: [] });
      broker.write(policyFile, `${OBSERVE}fs: { deny_write: ["$PROJECT/kept"] }\n`);
      const { stdout, notices } = await broker.run("pgrep -c sleep");
      expect(stdout).toBe("0\n");
      expect(notices.map(({ kind, message }) => [kind, message])).toEqual([
        [
          "session",
          "1 process that was kept in this session's world ended with it, because its policy has changed, or a session has begun in another folder: sleep",
        ],
      ]);
      expect((await broker.run("true")).notices).toEqual([]);
    } finally {
      await broker.stop();
    }
  });
});

describe.each(actors())("a policy that stopped loading, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: OBSERVE } });
  });
  afterAll(() => broker.stop());

  const BROKEN = `${OBSERVE}denyd: []\n`;
  const policyFile = (): string => join(broker.home, "policies/default.yaml");

  test("is told on every exec and by 'broker start' and 'status', until it loads again", async () => {
    expect(await broker.cli(["exec", "--", "true"])).toMatchObject({ code: 0, stderr: "" });
    broker.write(policyFile(), BROKEN);
    for (const command of ["true", "echo again"]) {
      const { code, stderr } = await broker.cli(["exec", "--", command]);
      expect(code).toBe(0);
      expect(stderr).toMatch(
        /^substrate: A policy does not load, so its last good version stays in force: default\.yaml:7:1: .*denyd.*\n$/,
      );
    }
    const started = await broker.cli(["broker", "start"]);
    expect(started.stdout).toContain("The broker is already running");
    expect(started.stderr).toMatch(
      /^substrate: policy 'default' does not load, so its last good version stays in force: default\.yaml:7:1/,
    );
    const status = await broker.cli(["status"]);
    expect(status.stdout).toMatch(/^policy +default does not load: default\.yaml:7:1/m);
    expect(status.code).toBe(1);
    broker.write(policyFile(), OBSERVE);
    expect(await broker.cli(["exec", "--", "true"])).toMatchObject({ code: 0, stderr: "" });
  });

  test("settings that stopped loading are told too", async () => {
    const file = join(broker.home, "config.yaml");
    const good = readFileSync(file, "utf8");
    broker.write(file, `${good}projcts: []\n`);
    const { stderr } = await broker.cli(["exec", "--", "true"]);
    expect(stderr).toMatch(
      /^substrate: config.yaml does not load, so the last good settings stay in force: .*config\.yaml:.*projcts/,
    );
    broker.write(file, good);
    expect((await broker.cli(["exec", "--", "true"])).stderr).toBe("");
  });

  test("a denial because nothing ever loaded leaves a violation span", async () => {
    broker.write(policyFile(), BROKEN);
    await broker.kill("SIGTERM");
    broker = await broker.again();
    const error = await broker.refused({ cmd: "touch not-run" });
    expect(error).toMatchObject({ status: 403, code: "policy_denied", exit: 126 });
    const span = await broker.span(error.span_id ?? "");
    expect(span).toMatchObject({
      event_type: "violation",
      agent_id: "test",
      cmd: "touch not-run",
      outcome: "refused",
      code: "policy_denied",
    });
    for (const verb of ["exec", "check"])
      expect(await broker.cli([verb, "--", "touch not-run"])).toMatchObject({
        code: 126,
        stderr: expect.stringContaining("does not load"),
      });
    expect((await broker.cli(["broker", "start"])).stderr).toContain("it allows nothing");
    broker.write(policyFile(), OBSERVE);
    await broker.run("true");
  });
});

describe.each(actors())("--agent, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: OBSERVE } });
  });
  afterAll(() => broker.stop());

  test("takes any name where nobody is listed; beside a list a name that is nearly one of it is refused", async () => {
    expect(await broker.cli(["exec", "--agent", "clade", "--", "true"])).toMatchObject({ code: 0 });
    const file = join(broker.home, "config.yaml");
    broker.write(file, `${readFileSync(file, "utf8")}agents: { claude: {} }\n`);
    await broker.cli(["policy", "reload"]);
    const isListed = async (): Promise<boolean> =>
      (await broker.cli(["broker", "status"])).stdout.includes("claude");
    expect(await eventually(isListed, 10_000)).toBe(true);
    for (const verb of ["exec", "check"]) {
      const { code, stderr } = await broker.cli([verb, "--agent", "clade", "--", "true"]);
      expect(code).toBe(125);
      expect(stderr).toMatch(
        /^substrate: config\.yaml lists no agent 'clade' \(did you mean 'claude'\?\)\. .*SUBSTRATE_AGENT_ID=clade/,
      );
    }
    for (const name of ["claude", "claude-2", "reviewer"])
      expect(await broker.cli(["exec", "--agent", name, "--", "true"])).toMatchObject({ code: 0 });
    const env = { SUBSTRATE_AGENT_ID: "clade" };
    expect(await broker.cli(["exec", "--", "true"], { env })).toMatchObject({ code: 0 });
  });
});

describe.each(actors())("the short words, as $kind", (actor) => {
  test("lead to where they are", async () => {
    const broker = await TestBroker.start(actor, { policies: { default: OBSERVE } });
    try {
      const help = await broker.cli(["help", "policy", "learn"]);
      expect(help).toMatchObject({ code: 0 });
      expect(help.stdout).toContain("Usage: substrate policy learn");
      expect((await broker.cli(["help", "polcy"])).stderr).toContain("(did you mean 'policy'?)");
      expect((await broker.cli(["version"])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
      expect((await broker.cli(["logs"])).stdout).toContain("Broker is ready");
      await broker.run("true");
      const status = await broker.cli(["status"]);
      expect(status.code).toBe(0);
      expect(status.stdout).toMatch(/^broker +runs \(pid \d+, version /m);
      expect(status.stdout).toMatch(/^policy +default only observes/m);
      expect(status.stdout).toMatch(/^worlds +1 warm\n +test in \//m);
      const json = JSON.parse((await broker.cli(["status", "--json"])).stdout) as { worlds: unknown[] };
      expect(json.worlds.length).toBe(1);
      expect((await broker.cli(["stop"])).stdout).toBe("The broker has stopped\n");
      const stopped = await broker.cli(["status"]);
      expect(stopped.code).toBe(1);
      expect(stopped.stdout).toContain("does not run ('substrate broker start')");
    } finally {
      await broker.stop();
    }
  });
});

describe.each(actors())("the broker of another checkout, as $kind", (actor) => {
  test("is named by 'broker start', and replaced by '--current', as npm start does", async () => {
    const own = await installationFor(actor);
    const elsewhere = mkdtempSync(join(actor.uid === 0 ? tmpdir() : actor.home, "sb-other-"));
    chmodSync(elsewhere, 0o755);
    const installation = installationIn(elsewhere, actor);
    const broker = await TestBroker.start(actor, { installation });
    const here = (...words: string[]): ReturnType<typeof runAs> =>
      runAs(actor, [own.node, own.launcher, ...words], {
        cwd: broker.project,
        env: { SUBSTRATE_HOME: broker.home },
        stdin: "",
      });
    try {
      const root = realpathSync(join(installation.launcher, "../../.."));
      const { stdout } = await here("broker", "start");
      expect(stdout).toContain(`from another installation: '${root}' (version `);
      expect(stdout).toContain("'substrate broker start --current' replaces the broker and ends its worlds");
      expect((await here("status")).stdout).toContain(`, from '${root}')`);
      const replaced = await here("broker", "start", "--current");
      expect(replaced.stdout).toMatch(/^Replacing the broker \(pid \d+\), from another installation/);
      expect((await here("broker", "start")).stdout).toMatch(/^The broker is already running \(pid \d+\)\n$/);
      expect(await here("exec", "--", "echo alive")).toMatchObject({ code: 0, stdout: "alive\n" });
    } finally {
      await here("broker", "stop");
      await broker.stop();
      rmSync(elsewhere, { recursive: true, force: true });
    }
  });
});
