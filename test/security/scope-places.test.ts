import { chownSync, existsSync, mkdirSync, realpathSync, renameSync, symlinkSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import type { TestBroker } from "../support/broker/broker.ts";
import { type ScopeAsker, ScopeGround } from "../support/broker/scopes.ts";

const FILES = `
fs:
  deny_read: ["$PROJECT/../shared/secret", "$PROJECT/../shared/*.pem", "$PROJECT/../denied-link", "$HOME/.ssh"]
  deny_write: ["$PROJECT/../shared/frozen"]
  write: ["$PROJECT/**"]
`;
const POLICIES = { default: `id: default\nname: Closed\nmode: enforce${FILES}` };
const WATCHING = { default: `id: default\nname: Watching\nmode: observe${FILES}` };

describe.each(actors())("what scopes open, as $kind", (actor) => {
  let ground: ScopeGround;
  let broker: TestBroker;
  let asker: ScopeAsker;
  beforeAll(async () => {
    ground = await ScopeGround.make(actor, { policies: POLICIES });
    ({ broker, asker } = ground);
  });
  afterAll(() => ground.remove());

  const at = (name: string): string => ground.at(name);
  const shared = (): string => `fs.write:${at("shared")}`;
  const marks = (name: string): string => `touch ${at(`shared/${name}`)}`;
  const isThere = (name: string): boolean => existsSync(at(`shared/${name}`));

  test("what is denied stays denied inside of what is granted", async () => {
    const scope_token = await asker.granted([shared()]);
    const { stdout } = await broker.run({
      cmd: `cd ${at("shared")}; cat secret/key a.pem; echo x > frozen; echo x > secret/new; echo y > old; cat old`,
      scope_token,
    });
    expect(stdout).toBe("y\n");
    expect([ground.text("shared/frozen"), ground.text("shared/secret/key")]).toEqual([
      "shared/frozen\n",
      "shared/secret/key\n",
    ]);
    expect(existsSync(at("shared/secret/new"))).toBe(false);
    ground.write("shared/old", "shared/old\n");
  });

  test("the neighbour whose name only begins like what is granted is not granted", async () => {
    const scope_token = await asker.granted([shared()]);
    await broker.run({
      cmd: `touch ${at("shared-not/new")} ${at("shared/../shared-not/new")} ${at("shared/neighbour")}; true`,
      scope_token,
    });
    expect([existsSync(at("shared-not/new")), isThere("neighbour")]).toEqual([false, true]);
  });

  test("no grant gives what is denied, hidden, the broker's, the system's or the home itself: nobody is even asked", async () => {
    symlinkSync(broker.home, at("door"));
    symlinkSync(at("shared/secret"), at("side-door"));
    ground.write("vault/key", "key");
    symlinkSync(at("vault"), at("denied-link"));
    mkdirSync(at("project/.git"), { recursive: true });
    ground.own();
    const home = realpathSync(actor.home);
    const never = [
      ...[broker.home, `${broker.home}/policies`, `${broker.home}/db/**`, at("door"), at("door/policies")],
      ...[
        at("shared/secret"),
        at("shared/secret/key"),
        at("shared/a.pem"),
        at("side-door"),
        at("vault/key"),
        at("shared/frozen"),
      ],
      ...[at("shared/../home"), "$PROJECT/../../..", "~/../../etc"],
      ...[
        "/",
        "/**",
        home,
        "~",
        "$HOME/**",
        "/etc",
        "/etc/passwd",
        "/usr/bin",
        "/bin/sh",
        "/proc/self",
        "/sys/kernel",
      ],
      ...[
        "/tmp",
        "/run/lock",
        "/var/tmp",
        "/dev/null",
        "/dev/shm",
        "$PROJECT/.git",
        at("missing"),
        at("old\u202e"),
      ],
    ].map((path) => `fs.write:${path}`);
    const unread = [broker.home, at("door"), at("shared/secret/key"), "/", "~", "/proc/1", "/run"];
    for (const scope of [...never, ...unread.map((path) => `fs.read:${path}`)]) {
      const { status, code } = await asker.ask([scope]);
      expect(`${status} ${code}`, scope).toMatch(/^(403 scope_denied|400 invalid_request)$/);
      const mixed = await asker.ask([shared(), scope]);
      expect(mixed.scope_token, scope).toBeUndefined();
      expect(mixed.approval_id, scope).toBeUndefined();
    }
  });

  test("what belongs to another user is not granted to be written", async ({ skip }) => {
    if (actor.uid !== 0) return skip("only root can make a file that belongs to somebody else");
    const path = ground.write("theirs/file", "theirs");
    chownSync(path, 12_345, 12_345);
    expect(await asker.ask([`fs.write:${path}`])).toMatchObject({ code: "scope_denied" });
    ground.own();
  });

  test("a link is granted as the place it leads to, and when it leads elsewhere afterwards nothing is opened", async () => {
    symlinkSync(at("shared"), join(broker.project, "link"));
    const scope_token = await asker.granted(["fs.write:$PROJECT/link"]);
    unlinkSync(join(broker.project, "link"));
    symlinkSync(at("other"), join(broker.project, "link"));
    const refused = await broker.refused({ cmd: "touch link/swapped", scope_token });
    expect(refused).toMatchObject({ status: 403, code: "scope_denied" });
    expect(existsSync(at("other/swapped"))).toBe(false);
    unlinkSync(join(broker.project, "link"));
    symlinkSync(at("shared"), join(broker.project, "link"));
    const reply = await broker.run({ cmd: `${marks("linked")}`, scope_token });
    expect(reply.scopes_used).toEqual([shared()]);
    expect(isThere("linked")).toBe(true);
  });

  test("a folder that was put in the granted one's place is not the granted one", async () => {
    const scope = `fs.write:${at("moving")}`;
    ground.write("moving/old", "old");
    ground.write("precious/old", "precious");
    const scope_token = await asker.granted([scope]);
    renameSync(at("moving"), at("moved"));
    renameSync(at("precious"), at("moving"));
    const refused = await broker.refused({ cmd: `rm ${at("moving/old")}`, scope_token });
    expect(refused).toMatchObject({ status: 403, code: "scope_denied" });
    expect(ground.text("moving/old")).toBe("precious");
    renameSync(at("moving"), at("precious"));
    renameSync(at("moved"), at("moving"));
    expect((await broker.run({ cmd: `rm ${at("moving/old")}`, scope_token })).exit).toBe(0);
  });

  test("an answer counts for the place that the person was asked about: one that changed meanwhile is asked anew", async () => {
    ground.write("early/old", "old");
    const scope = `fs.write:${at("early")}`;
    const asked = await asker.ask([scope]);
    renameSync(at("early"), at("early-moved"));
    ground.write("early/old", "another");
    const answer = await broker.operator("POST", `/v1/approvals/${asked.approval_id}`, { decision: "once" });
    expect(answer.status).not.toBe(200);
    const again = await asker.ask([scope]);
    expect(again.code).toBe("approval_required");
    expect(again.approval_id).not.toBe(asked.approval_id);
  });

  test("observing, what is granted reaches the host, and every other write stays in its world", async () => {
    const watching = await ScopeGround.make(actor, { policies: WATCHING });
    try {
      const scope_token = await watching.asker.granted([`fs.write:${watching.at("shared")}`]);
      const cmd = `touch ${watching.at("shared/new")} ${watching.at("shared-not/new")}; echo x > ${watching.at("shared/frozen")}; true`;
      await watching.broker.run({ cmd });
      expect(existsSync(watching.at("shared/new"))).toBe(false);
      await watching.broker.run({ cmd, scope_token });
      expect([existsSync(watching.at("shared/new")), existsSync(watching.at("shared-not/new"))]).toEqual([
        true,
        false,
      ]);
      expect(watching.text("shared/frozen")).toBe("shared/frozen\n");
    } finally {
      await watching.remove();
    }
  });
});
