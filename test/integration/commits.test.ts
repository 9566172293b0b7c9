import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../actors.ts";
import { TestBroker } from "../broker.ts";
import { hostGit } from "../git.ts";

describe.each(actors())("the commits that a span names, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor);
  });
  afterAll(() => broker.stop());

  test("a span names the commit that its project was at, and none where there is none", async () => {
    const before = await broker.run("true");
    hostGit(actor, broker.project, "init", "-q");
    hostGit(actor, broker.project, "commit", "-q", "--allow-empty", "-m", "first");
    const after = await broker.run("true");
    const commitOf = async (id: string): Promise<string | null | undefined> =>
      (await broker.span(id)).replay_context?.project_commit;
    expect(await commitOf(before.span_id)).toBe(null);
    expect(await commitOf(after.span_id)).toBe(hostGit(actor, broker.project, "rev-parse", "HEAD"));
    rmSync(join(broker.project, ".git"), { recursive: true });
  });

  test("a span names the commit that its policy was at when it was read", async () => {
    const policies = join(broker.home, "policies");
    expect(await broker.span((await broker.run("true")).span_id)).toMatchObject({ policy_commit: null });
    hostGit(actor, policies, "init", "-q");
    hostGit(actor, policies, "add", ".");
    hostGit(actor, policies, "commit", "-q", "-m", "policies");
    await broker.operator("POST", "/v1/policy/reload");
    const commit = hostGit(actor, policies, "rev-parse", "HEAD");
    expect(await broker.span((await broker.run("true")).span_id)).toMatchObject({
      policy_commit: commit,
      replay_context: { policy_commit: commit },
    });
    rmSync(join(policies, ".git"), { recursive: true });
  });
});
