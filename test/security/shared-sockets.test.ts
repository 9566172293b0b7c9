import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { buildProgram } from "../support/programs/programs.ts";
import { HostListener, SOCKETS } from "../support/programs/sockets.ts";

const POLICY = "id: default\nname: x\nmode: enforce\n";
const REFUSED = /^(?:111|2|13|20)\n$/; // ECONNREFUSED, ENOENT, EACCES, ENOTDIR

describe.each(actors())("Sockets that world.sockets shares, as $kind", (actor) => {
  let broker: TestBroker;
  let folder: string;
  const listeners: HostListener[] = [];
  const listen = async (path: string): Promise<HostListener> => {
    const made = await HostListener.start(actor, "/", join(broker.project, "sock"), ["stream", path]);
    listeners.push(made);
    return made;
  };
  const dial = async (name: string): Promise<string> =>
    (await broker.run({ cmd: `./sock dial stream "${name}" connect` })).stdout;
  /** A policy is read again when its file's identity changes. */
  const share = (sockets: readonly string[]): void =>
    broker.write(
      join(broker.home, "policies/default.yaml"),
      `${POLICY}world: { sockets: [${sockets.map((name) => JSON.stringify(name)).join(", ")}] }\n`,
    );

  beforeAll(async () => {
    folder = mkdtempSync("/tmp/substrate-agents-");
    mkdirSync(join(folder, "gnupg"));
    broker = await TestBroker.start(actor, {
      policies: { default: POLICY },
      environment: {
        SSH_AUTH_SOCK: join(folder, "agent.1"),
        XDG_RUNTIME_DIR: folder,
      },
    });
    buildProgram(broker, "sock", SOCKETS);
    own(folder, actor);
  });
  afterAll(async () => {
    for (const listener of listeners) listener.close();
    await broker.stop();
    rmSync(folder, { recursive: true });
  });

  test("ssh-agent is reached by its variable where it is named, and not without; after a new start too", async () => {
    const path = join(folder, "agent.1");
    const host = await listen(path);
    expect(await broker.run("echo $SSH_AUTH_SOCK").then(({ stdout }) => stdout)).toBe("\n");
    for (const name of [path, "/run/substrate-ssh-agent.sock"]) expect(await dial(name)).toMatch(REFUSED);
    expect((await broker.run("true")).isolation.ipc).not.toContain("socket");
    share(["ssh-agent"]);
    expect(await dial("$SSH_AUTH_SOCK")).toBe("ok\n");
    await expect.poll(() => host.came).toBe(1);
    expect((await broker.run("true")).isolation.ipc).toMatch(
      /^on: commands may connect to the host's ssh-agent$/,
    );
    expect(await dial(path)).toMatch(REFUSED);
    host.close();
    rmSync(path);
    const next = await listen(path);
    expect(await dial("$SSH_AUTH_SOCK")).toBe("ok\n");
    await expect.poll(() => next.came).toBe(1);
    share([]);
    expect(await dial("/run/substrate-ssh-agent.sock")).toMatch(REFUSED);
    expect(next.came).toBe(1);
  });

  test("an isolated command reaches it as well", async () => {
    const path = join(folder, "agent.1");
    rmSync(path, { force: true });
    const host = await listen(path);
    broker.write(
      join(broker.home, "policies/default.yaml"),
      `${POLICY}commands: { isolated: ["*"] }\nworld: { sockets: [ssh-agent] }\n`,
    );
    expect(await dial("$SSH_AUTH_SOCK")).toBe("ok\n");
    await expect.poll(() => host.came).toBe(1);
  });

  test("gpg-agent is where gpg looks for it, in a folder of the user's alone", async () => {
    const host = await listen(join(folder, "gnupg/S.gpg-agent.extra"));
    // The usual socket hands out secret keys.
    const full = await listen(join(folder, "gnupg/S.gpg-agent"));
    const inside = `/run/user/${actor.uid}/gnupg`;
    expect(await dial(`${inside}/S.gpg-agent`)).toMatch(REFUSED);
    share(["gpg-agent"]);
    expect(await dial(`${inside}/S.gpg-agent`)).toBe("ok\n");
    await expect.poll(() => host.came).toBe(1);
    expect(full.came).toBe(0);
    const { stdout } = await broker.run(`stat -c '%a %u' ${inside} /run/user/${actor.uid}`);
    expect(stdout).toBe(`700 ${actor.uid}\n700 ${actor.uid}\n`);
  });

  test("a path is reached by that path: in the project, in a host folder, in /tmp; the one beside it is not", async () => {
    const home = join(broker.folder, "elsewhere");
    mkdirSync(home);
    own(home, actor);
    for (const place of [broker.project, home, folder]) {
      const [named, other] = [join(place, "named.sock"), join(place, "other.sock")];
      const [host, beside] = [await listen(named), await listen(other)];
      share([]);
      expect(await dial(named)).toMatch(REFUSED);
      share([named]);
      expect(await dial(named)).toBe("ok\n");
      expect(await dial(other)).toMatch(REFUSED);
      await expect.poll(() => host.came).toBe(1);
      expect(beside.came).toBe(0);
    }
  });

  test("the broker's own sockets are shared with nobody, and what is not there is no fault", async () => {
    share([join(broker.home, "sock/control.sock"), "/nowhere/at.sock", "$PROJECT/sock.c"]);
    expect(await dial(join(broker.home, "sock/control.sock"))).toMatch(REFUSED);
    expect(await dial("/nowhere/at.sock")).toMatch(REFUSED);
  });

  test("of two policies, what both name", async () => {
    const host = await listen(join(broker.project, "both.sock"));
    const one = await listen(join(broker.project, "one.sock"));
    broker.write(
      join(broker.home, "policies/narrow.yaml"),
      'id: narrow\nname: x\nselectable: true\nworld: { sockets: ["$PROJECT/both.sock"] }\n',
    );
    share(["$PROJECT/both.sock", "$PROJECT/one.sock"]);
    const run = async (name: string): Promise<string> =>
      (
        await broker.run({
          argv: ["./sock", "dial", "stream", name, "connect"],
          profile: "narrow",
        })
      ).stdout;
    expect(await run("both.sock")).toBe("ok\n");
    expect(await run("one.sock")).toMatch(REFUSED);
    await expect.poll(() => host.came).toBe(1);
    expect(one.came).toBe(0);
  });
});

function own(path: string, { uid, gid }: { readonly uid: number; readonly gid: number }): void {
  const made = spawnSync("chown", ["-R", `${uid}:${gid}`, path]);
  if (made.status !== 0) throw new Error(`Cannot give '${path}' to user ${uid}: ${made.stderr.toString()}`);
}
