/** A broker that starts asks the host's tools what they are set to: never one that commands could have written before. */
import { chmodSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { eventually, TestBroker } from "../support/broker/broker.ts";

const policy = (write: string, net = "other.example"): string => `id: default
name: Tools
mode: enforce
fs: { write: ["$PROJECT/**"${write}] }
net: { allowed: ["${net}"] }
`;

describe.each(actors())("npm on the broker's PATH, as $kind,", (actor) => {
  let folder: string;
  let broker: TestBroker | undefined;
  beforeEach(() => {
    folder = mkdtempSync(join(actor.home, "sb-tools-"));
    chmodSync(folder, 0o777);
  });
  afterEach(async () => {
    await broker?.stop();
    broker = undefined;
    rmSync(folder, { recursive: true, force: true });
  });
  const ran = (): boolean => existsSync(join(folder, "ran"));

  /** Each broker finds an npm that leaves a mark, in a folder that may be `opened` by one of these policies. */
  async function start(policies: Readonly<Record<string, string>>, config = ""): Promise<TestBroker> {
    broker = await TestBroker.start(actor, {
      policies,
      config,
      environment: { PATH: `${join(folder, "bin")}:/usr/local/bin:/usr/bin:/bin` },
      wrap: () => [
        "sh",
        "-c",
        `mkdir -p ${folder}/bin && printf '#!/bin/sh\\ntouch ${folder}/ran\\n' > ${folder}/bin/npm && chmod +x ${folder}/bin/npm && exec "$@"`,
        "sh",
      ],
    });
    return broker;
  }

  test("is asked ahead of the first command", async () => {
    await start({ default: policy("") });
    expect(await eventually(ran, 10_000)).toBe(true);
  });

  test.each<[string, Readonly<Record<string, string>>, string]>([
    ["the default policy", { default: "opened" }, ""],
    ["an agent's policy", { default: "", other: "opened" }, "agents: { deployer: { policy: other } }\n"],
    ["a project's policy", { default: "", other: "opened" }, 'policies: { projects: { "/srv/x": other } }\n'],
  ])("is never run where %s lets commands write it", async (_whose, kinds, config) => {
    const opened = `, "${folder}/bin/**"`;
    const policies = Object.entries(kinds).map(
      ([name, kind]) => [name, policy(kind === "" ? "" : opened)] as const,
    );
    const here = await start(Object.fromEntries(policies), config);
    expect((await here.run("true")).exit).toBe(0);
    expect(await eventually(ran, 1500)).toBe(false);
  });

  test.each(["enforce", "observe"])(
    "is asked ahead for its preset in a policy with mode %s",
    async (mode) => {
      await start({ default: policy("", "@npm").replace("enforce", mode) });
      expect(await eventually(ran, 10_000)).toBe(true);
    },
  );

  test("is never run for its preset where another policy lets commands write it", async () => {
    const here = await start(
      { default: policy("", "@npm"), other: policy(`, "${folder}/bin/**"`) },
      "agents: { deployer: { policy: other } }\n",
    );
    expect((await here.run("true")).exit).toBe(0);
    expect(await eventually(ran, 1500)).toBe(false);
  });

  test("is not asked where a policy without its preset only observes", async () => {
    await start({ default: policy("").replace("enforce", "observe") });
    expect(await eventually(ran, 1500)).toBe(false);
  });
});
