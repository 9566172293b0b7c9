import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { actors, runAs } from "../support/users/users.ts";
import { eventually, TestBroker } from "../support/broker/broker.ts";
import { pathWithShims, SHIM_POLICY as POLICY, toolFor } from "../support/broker/shims.ts";

const OBSERVE = POLICY.replace("enforce", "observe");

describe.each(actors())("shims without a broker, as $kind", (actor) => {
  test.each([
    ["enforce", POLICY, 126],
    ["observe", OBSERVE, 0],
    ["enforce that says allow", `${POLICY}shims: { offline: allow }\n`, 0],
    ["observe that says deny", `${OBSERVE}shims: { offline: deny }\n`, 126],
  ])("do as the last policy that was read says: %s", async (_mode, policy, code) => {
    const broker = await TestBroker.start(actor, { policies: { default: policy } });
    try {
      const bin = await toolFor(broker);
      const env = { PATH: pathWithShims(broker, bin), SUBSTRATE_HOME: broker.home };
      await broker.run("true");
      expect(await eventually(() => existsSync(join(broker.home, "shims/.offline")), 5000)).toBe(true);
      const file = join(broker.project, "offline");
      await broker.kill("SIGKILL");
      const words = ["/bin/sh", "-c", `tool x touch '${file}'`];
      const ended = await runAs(actor, words, { cwd: broker.project, env, stdin: "" });
      expect([ended.code, existsSync(file)], ended.stderr).toEqual([code, code === 0]);
      expect(ended.stderr).toContain("no broker runs");
    } finally {
      await broker.stop();
    }
  });
});
