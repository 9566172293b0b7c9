import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../actors.ts";
import { TestBroker } from "../broker.ts";

const OBSERVE = [
  "id: default",
  "name: Observes",
  "commands:",
  '  denied: ["touch forbidden*", "wc *"]',
  '  ask: ["touch asked*"]',
  '  isolated: ["touch apart*"]',
  "",
].join("\n");

describe.each(actors())("what a policy that observes would have done, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: OBSERVE } });
  });
  afterAll(() => broker.stop());

  test.each([
    ["touch forbidden", "would deny this command: 'touch forbidden' matches 'touch forbidden*'"],
    ["touch asked", "would ask a person before this command: 'touch asked' matches 'touch asked*'"],
    ["touch apart", "would hold what this command changes: 'touch apart' matches 'touch apart*'"],
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
      /^substrate: Policy 'default' only observes; with 'mode: enforce' it would refuse that this program starts: '\/usr\/bin\/wc -c \/dev\/null' matches 'wc \*' in commands\.denied \(default\.yaml:\d\)/m,
    );
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  });

  test("what would have run all the same has no line", async () => {
    expect(await broker.cli(["exec", "--", "touch other"])).toMatchObject({ code: 0, stderr: "" });
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
        /^substrate: A policy does not load, so its last good version holds: default\.yaml:7:1: .*denyd.*\n$/,
      );
    }
    const started = await broker.cli(["broker", "start"]);
    expect(started.stdout).toContain("The broker runs already");
    expect(started.stderr).toMatch(
      /^substrate: policy 'default' does not load, so its last good version holds: default\.yaml:7:1/,
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
      /^substrate: The settings do not load, so the last good ones hold: .*config\.yaml:.*projcts/,
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
    expect((await broker.cli(["broker", "start"])).stderr).toContain("nothing is allowed under it");
    broker.write(policyFile(), OBSERVE);
    await broker.run("true");
  });
});
