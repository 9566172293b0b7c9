/** `policy show` says what holds, also while the file on the disk is no policy. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";

const POLICY = 'id: default\nname: Shown\nmode: enforce\ncommands: { denied: ["touch *"] }\n';

describe.each(actors())("policy show, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, {
      policies: { default: POLICY, other: POLICY.replace("default", "other") },
    });
  });
  afterAll(() => broker.stop());
  const file = (name: string): string => join(broker.home, "policies", `${name}.yaml`);
  beforeEach(async () => {
    broker.write(file("default"), POLICY);
    await broker.run("true");
  });

  test("shows the file, and exits 0", async () => {
    const { code, stdout } = await broker.cli(["policy", "show"]);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^default: Shown \(enforce\)\n/)]);
  });

  test("policy list names the operator's policies and the shipped ones, and says which does not load", async () => {
    broker.write(
      file("mine"),
      POLICY.replace("default", "mine").replace("Shown", "My own\nselectable: true"),
    );
    broker.write(file("worse"), "nonsense\n");
    const { code, stdout } = await broker.cli(["policy", "list"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^default +enforce +Shown$/m);
    expect(stdout).toMatch(/^mine +enforce --profile +My own$/m);
    expect(stdout).toMatch(/^worse +does not load$/m);
    expect(stdout).toMatch(/^strict +enforce --profile +Strict$/m);
    const rows = JSON.parse((await broker.cli(["policy", "list", "--json"])).stdout) as { name: string }[];
    expect(rows.map(({ name }) => name).filter((name) => name === "default")).toEqual(["default"]);
    expect(rows.find(({ name }) => name === "worse")).toMatchObject({
      mode: null,
      problems: [expect.any(String)],
    });
    for (const name of ["mine", "worse"]) rmSync(file(name));
  });

  test("of a broken file it shows the last good one, which holds, and what is wrong; exit 1", async () => {
    broker.write(file("default"), `${POLICY}commands: 7\n`);
    const { code, stdout } = await broker.cli(["policy", "show"]);
    expect(code).toBe(1);
    expect(stdout).toMatch(
      /^Policy 'default' does not load:\n {2}default\.yaml:5:\d+: .*\nThe last good version stays in force until the file is mended:\n/,
    );
    expect(stdout).toMatch(/denied +touch \*/);
    expect(await broker.refused({ cmd: "touch x" })).toMatchObject({
      code: "policy_denied",
      rule: { pattern: "touch *" },
    });
    const json = await broker.cli(["policy", "show", "--json"]);
    expect(json.code).toBe(1);
    const { policy_hash: hash } = await broker.run("true");
    expect(JSON.parse(json.stdout)).toMatchObject({
      id: "default",
      hash,
      problems: [expect.stringContaining("default.yaml:5:")],
    });
  });

  test("of one that never loaded it says that nothing is allowed", async () => {
    broker.write(file("fresh"), "id: fresh\n");
    const { code, stderr } = await broker.cli(["policy", "show", "fresh"]);
    expect([code, stderr]).toEqual([
      125,
      expect.stringMatching(/fresh\.yaml:1:1: [^]*so it allows nothing until/),
    ]);
  });

  test("another policy's broken file changes nothing about this one", async () => {
    broker.write(file("other"), "nonsense\n");
    expect((await broker.cli(["policy", "show"])).code).toBe(0);
    broker.write(file("other"), POLICY.replace("default", "other"));
  });

  test("agents are not told policies, and a name that is no policy is not found", async () => {
    expect(await broker.call("GET", "/v1/policy/default")).toMatchObject({ status: 404 });
    for (const name of ["nope", "..%2F..%2Fconfig", "Default"])
      expect([name, (await broker.operator("GET", `/v1/policy/${name}`)).status]).toEqual([name, 404]);
  });
});

test.each(
  actors()
    .slice(0, 1)
    .map((actor) => [actor.kind, actor] as const),
)("without a broker a broken file is told with what that means, as %s", async (_kind, actor) => {
  const broker = await TestBroker.start(actor, { policies: { default: POLICY } });
  await broker.kill("SIGTERM");
  broker.write(join(broker.home, "policies/default.yaml"), "nonsense\n");
  const { code, stderr } = await broker.cli(["policy", "show"]);
  await broker.stop();
  expect([code, stderr]).toEqual([125, expect.stringMatching(/does not load[^]*No broker runs/)]);
});
