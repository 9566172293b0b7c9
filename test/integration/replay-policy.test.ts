import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { put, REPLAY_POLICY, replayed } from "../support/broker/replays.ts";

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
