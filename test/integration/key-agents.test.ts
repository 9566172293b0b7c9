/** The person's own ssh-agent and gpg-agent, used from inside by their real programs. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestBroker } from "../support/broker/broker.ts";
import { StreamClient } from "../support/broker/stream.ts";
import { skip } from "../support/run/skips.ts";
import { type Actor, actors, type Ended, runAs } from "../support/users/users.ts";

const SHARING = "world: { sockets: [ssh-agent, gpg-agent] }\n";
const POLICY = "id: default\nname: Keys of the person\nmode: enforce\n";
const MAIL = "key@example.test";

const has = (program: string): boolean => spawnSync(program, ["--version"]).status === 0;
const hasGpg = has("gpg") && has("gpgconf");
const hasSsh = existsSync("/usr/bin/ssh-agent") && existsSync("/usr/bin/ssh-add");

describe.each(actors())("keys, as $kind", (actor) => {
  let broker: TestBroker;
  let folder: string;
  let agent: number | undefined;
  const person = (argv: readonly string[]): Promise<Ended> =>
    runAs(actor, argv, { cwd: folder, env: { HOME: folder, SSH_AUTH_SOCK: join(folder, "ssh.sock") } });
  /** What a command prints and says with a home of its own, and how it ended. */
  const own = async (cmd: string) => {
    const client = await StreamClient.open(broker, { cmd, home: "own" });
    const end = await client.ended();
    return { out: client.screen, err: client.err.toString(), end };
  };

  beforeAll(async () => {
    // A short path: that of a socket has at most 107 bytes.
    folder = mkdtempSync(join(actor.uid === 0 ? "/opt" : actor.home, "sb-key-"));
    mkdirSync(join(folder, ".gnupg"), { mode: 0o700 });
    giveTo(actor, folder);
    if (hasSsh) {
      await person(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "of-the-person", "-f", "id"]);
      const { stdout } = await person(["ssh-agent", "-a", join(folder, "ssh.sock")]);
      agent = Number(/SSH_AGENT_PID=(\d+)/.exec(stdout)?.[1]);
      await person(["ssh-add", "-q", "id"]);
    }
    broker = await TestBroker.start(actor, {
      folder,
      environment: {
        HOME: folder,
        SSH_AUTH_SOCK: join(folder, "ssh.sock"),
        XDG_RUNTIME_DIR: join(folder, "none"),
      },
      policies: { default: POLICY + SHARING, none: `${POLICY.replace("default", "none")}selectable: true\n` },
    });
  });
  afterAll(async () => {
    if (hasGpg) await person(["gpgconf", "--kill", "all"]);
    if (agent !== undefined) process.kill(agent);
    await broker.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test("ssh-add lists the person's key where the policy names ssh-agent; elsewhere one sentence names the key", async () => {
    if (!hasSsh) skip("ssh-agent in a world", "ssh-agent is not installed");
    const listed = await own("ssh-add -l; cat ~/id");
    expect(listed.out).toMatch(/^256 SHA256:\S+ of-the-person \(ED25519\)\n$/);
    expect(listed.end["isolation"]).toMatchObject({ ipc: expect.stringMatching(/^on: .* ssh-agent/) });
    const plain = await broker.run("ssh-add -l");
    expect(plain.stdout).toContain("of-the-person");
    const refused = await broker.run({ cmd: "ssh-add -l", profile: "none" });
    expect(refused).toMatchObject({ exit: 2, stdout: "", isolation: { ipc: "on" } });
    expect(refused.notices.map(({ message }) => message)).toEqual([
      expect.stringContaining("'world.sockets: [ssh-agent]' in every policy in force shares yours"),
    ]);
  });

  test("gpg signs with the person's key and cannot take the key away", async () => {
    if (!hasGpg) skip("gpg-agent in a world", "gpg is not installed");
    const make = ["--quick-gen-key", `Key <${MAIL}>`, "ed25519", "sign", "never"];
    const made = await person(["gpg", "--batch", "--quiet", "--passphrase", "", ...make]);
    const { stdout: socket } = await person(["gpgconf", "--list-dirs", "agent-extra-socket"]);
    if (made.code !== 0 || !socket.startsWith(folder))
      skip("gpg-agent in a world", `gpg's agent is not in the test's home: ${socket}${made.stderr}`);
    const { stdout: key } = await person(["gpg", "--armor", "--export", MAIL]);
    writeFileSync(join(broker.project, "key.asc"), key);
    writeFileSync(join(broker.project, "text"), "signed\n");
    const signed = await own(
      `gpg -q --batch --import key.asc && gpg -q --batch -u ${MAIL} --armor --detach-sign -o - text`,
    );
    expect(signed.out).toMatch(/^-----BEGIN PGP SIGNATURE-----\n/);
    writeFileSync(join(folder, "text.asc"), signed.out);
    const verified = await person(["gpg", "--verify", "text.asc", join(broker.project, "text")]);
    expect(verified.stderr).toContain(`Good signature from "Key <${MAIL}>"`);
    const taken = await own(`gpg --batch --armor --export-secret-keys ${MAIL}`);
    expect(taken.out).not.toContain("PRIVATE KEY");
    expect(taken.err).toContain("Forbidden");
  });
});

function giveTo({ uid, gid }: Actor, folder: string): void {
  const made = spawnSync("chown", ["-R", `${uid}:${gid}`, folder]);
  if (made.status !== 0) throw new Error(`Cannot give '${folder}' to user ${uid}: ${made.stderr.toString()}`);
}
