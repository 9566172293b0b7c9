import { dirname, join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { hostGit } from "../support/git/git.ts";
import { put, replayed, SAME } from "../support/broker/replays.ts";

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
