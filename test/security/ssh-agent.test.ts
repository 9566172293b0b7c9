/** The person's real ssh-agent behind the broker's socket: its real programs in a world use its keys, and change nothing in it. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { TestBroker } from "../support/broker/broker.ts";
import {
  CLIENT,
  extension,
  LIST,
  message,
  REMOVE_ALL,
  sessionBind,
} from "../support/programs/ssh-agent-client.ts";
import { skip } from "../support/run/skips.ts";
import { type Actor, actors, type Ended, runAs } from "../support/users/users.ts";

const POLICY = "id: default\nname: x\nmode: enforce\nworld: { sockets: [ssh-agent] }\n";
const PROGRAMS = ["ssh-agent", "ssh-add", "ssh-keygen"];
const hasSsh = PROGRAMS.every((name) => existsSync(`/usr/bin/${name}`));
/** What the agent's programs answer, and ours. */
const [FAILURE, SUCCESS, EXTENSION_FAILURE, KEYS] = [5, 6, 28, 12];

/** A smart card's library for the agent: leaves a mark beside itself where it is loaded. */
const LIBRARY = (mark: string): string => `
#include <fcntl.h>
__attribute__((constructor)) static void loaded(void) { open("${mark}", O_CREAT | O_WRONLY, 0600); }
unsigned long C_GetFunctionList(void **list) { *list = 0; return 5; }
`;

describe.each(hasSsh ? actors() : [])("The person's ssh-agent, as $kind", (actor) => {
  let broker: TestBroker;
  let folder: string;
  let agent: number | undefined;
  let keys: string;
  const person = (argv: readonly string[], stdin = ""): Promise<Ended> =>
    runAs(actor, argv, { cwd: folder, stdin, env: { SSH_AUTH_SOCK: join(folder, "agent") } });
  const startAgent = async (): Promise<void> => {
    const words = ["ssh-agent", "-a", join(folder, "agent"), "-P", `${folder}/*`];
    const { stdout } = await person(words);
    agent = Number(/SSH_AGENT_PID=(\d+)/.exec(stdout)?.[1]);
    await person(["ssh-add", "-q", "id"]);
  };
  const endAgent = async (): Promise<void> => {
    if (agent !== undefined) process.kill(agent);
    agent = undefined;
    await expect.poll(() => existsSync(join(folder, "agent"))).toBe(false);
  };
  /** The types of the answers to these messages, sent at once from inside a world. */
  const ask = async (...messages: readonly Buffer[]): Promise<string> =>
    (await broker.run({ argv: [process.execPath, "-e", CLIENT, Buffer.concat(messages).toString("hex")] }))
      .stdout;

  beforeAll(async () => {
    // A short path: that of a socket has at most 107 bytes.
    folder = mkdtempSync(join(actor.uid === 0 ? "/opt" : actor.home, "sb-agent-"));
    giveTo(actor, folder);
    await person(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "of-the-person", "-f", "id"]);
    await startAgent();
    broker = await TestBroker.start(actor, {
      policies: { default: POLICY },
      environment: { SSH_AUTH_SOCK: join(folder, "agent") },
    });
  });
  beforeEach(async () => {
    keys = (await person(["ssh-add", "-L"])).stdout;
    if (!/^ssh-ed25519 \S+ of-the-person\n$/.test(keys)) throw new Error(`The agent holds '${keys}'`);
  });
  afterAll(async () => {
    if (agent !== undefined) process.kill(agent);
    await broker.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test("takes no key of a world's, and loses none to it; a person's ssh-add adds and removes", async () => {
    await broker.run("ssh-keygen -q -t ed25519 -N '' -C of-a-world -f evil");
    for (const cmd of ["ssh-add evil", "ssh-add -t 60 -c evil"]) {
      const added = await broker.run(cmd);
      expect(added.exit, cmd).toBe(1);
      expect(added.notices.map(({ message: text }) => text)).toEqual([
        expect.stringMatching(/^'ssh-add' failed: commands in a world list the keys of your ssh-agent/),
      ]);
      expect((await person(["ssh-add", "-L"])).stdout, cmd).toBe(keys);
    }
    await broker.run("ssh-add -L > person.pub");
    for (const cmd of ["ssh-add -D", "ssh-add -d person.pub"]) {
      const removed = await broker.run(cmd);
      expect(removed, cmd).toMatchObject({ exit: 1, notices: [expect.anything()] });
      expect((await person(["ssh-add", "-L"])).stdout, cmd).toBe(keys);
    }
    expect((await person(["ssh-add", join(broker.project, "evil")])).code).toBe(0);
    expect((await broker.run("ssh-add -L")).stdout).toContain("of-a-world");
    expect((await person(["ssh-add", "-d", join(broker.project, "evil")])).code).toBe(0);
    expect((await broker.run("ssh-add -L")).stdout).toBe(keys);
  });

  test("is not locked by a world; a person locks it, for worlds too, and unlocks it", async () => {
    expect((await broker.run("printf 'a\\na\\n' | ssh-add -x")).stderr).toContain("agent refused operation");
    expect((await person(["ssh-add", "-L"])).stdout).toBe(keys);
    expect((await person(["ssh-add", "-x"], "word\nword\n")).code).toBe(0);
    expect((await broker.run("ssh-add -L")).stdout).not.toContain("ssh-ed25519");
    expect((await broker.run("printf 'word\\n' | ssh-add -X")).stderr).toContain("agent refused operation");
    expect((await broker.run("ssh-add -L")).stdout).not.toContain("ssh-ed25519");
    expect((await person(["ssh-add", "-X"], "word\n")).code).toBe(0);
    expect((await broker.run("ssh-add -L")).stdout).toBe(keys);
  });

  test("loads no library for a world (CVE-2023-38408); for a person it does", async () => {
    const [library, mark] = [join(folder, "card.so"), join(folder, "loaded")];
    writeFileSync(`${library}.c`, LIBRARY(mark));
    expect(spawnSync("cc", ["-shared", "-fPIC", "-o", library, `${library}.c`]).status).toBe(0);
    giveTo(actor, folder);
    const refused = await broker.run(`printf '\\n' | ssh-add -s ${library}`);
    expect(refused.stderr).toMatch(/Could not add card ".*": agent refused operation/);
    expect(refused.notices.map(({ message: text }) => text)).toEqual([
      expect.stringContaining("load a smart card's library"),
    ]);
    expect(existsSync(mark)).toBe(false);
    // No card is in it, so this fails too, after the library was loaded.
    await person(["ssh-add", "-s", library], "\n");
    expect(existsSync(mark)).toBe(true);
    rmSync(mark);
    await broker.run(`printf '\\n' | ssh-add -s ${library}; printf '\\n' | ssh-add -e ${library}`);
    expect(existsSync(mark)).toBe(false);
  });

  test("lists and signs for a world, and the signature holds outside", async () => {
    expect((await broker.run("ssh-add -l")).stdout).toMatch(/^256 SHA256:\S+ of-the-person \(ED25519\)\n$/);
    writeFileSync(join(broker.project, "text"), "signed\n");
    const signed = await broker.run(
      "ssh-add -L > person.pub && ssh-keygen -q -Y sign -n file -f person.pub < text",
    );
    expect(signed.stdout).toMatch(/^-----BEGIN SSH SIGNATURE-----\n/);
    writeFileSync(join(folder, "text.sig"), signed.stdout);
    writeFileSync(join(folder, "allowed"), `me ${keys}`);
    const verify = [
      "ssh-keygen",
      "-Y",
      "verify",
      "-f",
      "allowed",
      "-I",
      "me",
      "-n",
      "file",
      "-s",
      "text.sig",
    ];
    expect(await person(verify, "signed\n")).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("Good"),
    });
    expect(await person(verify, "another\n")).toMatchObject({ code: 255 });
  });

  test("answers pipelined requests in order, binds a connection to a host, and hears no other extension", async () => {
    expect(await ask(LIST, REMOVE_ALL, LIST, message(22), LIST)).toBe(
      `${[KEYS, FAILURE, KEYS, FAILURE, KEYS].join(" ")} closed\n`,
    );
    // The agent verifies the host's signature, so both answers are its own.
    expect(await ask(sessionBind(), LIST)).toBe(`${[SUCCESS, KEYS].join(" ")} closed\n`);
    expect(await ask(sessionBind(false))).toMatch(
      new RegExp(`^(?:${FAILURE}|${EXTENSION_FAILURE}) closed\n$`),
    );
    expect(await ask(extension("session-bind"), LIST)).toBe(`${[FAILURE, KEYS].join(" ")} closed\n`);
    expect(await ask(LIST, Buffer.alloc(4), LIST)).toMatch(new RegExp(`^(?:${KEYS} )?closed\n$`));
    expect(await ask(Buffer.from([0, 4, 0, 1]), LIST)).toBe("closed\n");
    expect((await person(["ssh-add", "-L"])).stdout).toBe(keys);
  });

  test("keeps a world's processes when it starts again, and is named as not there while it is gone", async () => {
    const { world_id: before } = await broker.run("true");
    await endAgent();
    const gone = await broker.run("ssh-add -l");
    expect(gone).toMatchObject({ exit: 2, isolation: { ipc: "on" } });
    expect(gone.notices.map(({ message: text }) => text)).toEqual([
      expect.stringContaining("this world has no ssh-agent"),
    ]);
    await startAgent();
    const { world_id: next, stdout } = await broker.run("ssh-add -L");
    expect(stdout).toBe(keys);
    expect(next).not.toBe(before);
    if (agent !== undefined) process.kill(agent);
    await startAgent();
    expect(await broker.run("ssh-add -L")).toMatchObject({ stdout: keys, world_id: next });
  });

  test("is behind a socket of the broker's user alone, replaced after kill -9 and gone when the broker stops", async () => {
    const socket = join(broker.home, "sock/ssh.sock");
    expect((statSync(socket).mode & 0o777).toString(8)).toBe("600");
    const left = statSync(socket).ino;
    await broker.kill("SIGKILL");
    expect(statSync(socket).ino).toBe(left);
    const next = await broker.again();
    try {
      expect((await next.run("ssh-add -L")).stdout).toBe(keys);
      expect((await next.run("ssh-add -D")).exit).toBe(1);
      expect((await person(["ssh-add", "-L"])).stdout).toBe(keys);
    } finally {
      await next.kill("SIGTERM");
    }
    expect(existsSync(socket)).toBe(false);
  });
});

test.each(hasSsh ? [] : PROGRAMS)("everything with %s", (name) =>
  skip(name, "OpenSSH's programs are not installed"),
);

function giveTo({ uid, gid }: Actor, folder: string): void {
  const made = spawnSync("chown", ["-R", `${uid}:${gid}`, folder]);
  if (made.status !== 0) throw new Error(`Cannot give '${folder}' to user ${uid}: ${made.stderr.toString()}`);
}
