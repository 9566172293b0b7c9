import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { hostGit } from "../support/git/git.ts";

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

  test("it is the commit of the content that holds: none for an edit, and the good one while the file is broken", async () => {
    const policies = join(broker.home, "policies");
    const file = join(policies, "default.yaml");
    const shipped = readFileSync(file, "utf8");
    const commit = (message: string): string => {
      hostGit(actor, policies, "add", ".");
      hostGit(actor, policies, "commit", "-q", "-m", message);
      return hostGit(actor, policies, "rev-parse", "HEAD");
    };
    const told = async (): Promise<string | null> =>
      (await broker.span((await broker.run("true")).span_id)).policy_commit;
    hostGit(actor, policies, "init", "-q");
    const first = commit("first");
    await broker.operator("POST", "/v1/policy/reload");
    expect(await told()).toBe(first);
    broker.write(file, `${shipped}# nobody has committed this\n`);
    expect(await told()).toBe(null);
    const second = commit("second");
    expect(await told()).toBe(second);
    // Packed, as after a clone.
    hostGit(actor, policies, "gc", "-q");
    const third = ((): string => {
      broker.write(join(policies, "notes"), "beside it\n");
      return commit("third");
    })();
    expect(await told()).toBe(third);
    broker.write(file, "nonsense\n");
    expect(await told()).toBe(third);
    const broken = commit("broken");
    expect(broken).not.toBe(third);
    expect(await told()).toBe(third);
    const { document } = await broker.operator("GET", "/v1/policy/default");
    expect(document).toMatchObject({
      policy_commit: third,
      problems: [expect.stringMatching(/^default\.yaml:1:1: /)],
    });
    rmSync(join(policies, ".git"), { recursive: true });
    broker.write(file, shipped);
    expect(await told()).toBe(null);
  });
});
