import { existsSync, readFileSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { everyActor, spawnAs } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { HomeFolder } from "../support/users/folders.ts";
import { needs } from "../support/run/needs.ts";

/** What an enforcing policy hides below a folder of the home. */
function policyFor(folder: string, mode: string): string {
  return `
id: default
name: Host trees
mode: ${mode}
fs:
  deny_read:
    - "${folder}/.ssh"
    - "${folder}/link"
    - "${folder}/later/key"
    - "${folder}/deep/**/*.pem"
    - "${folder}/{one,two}.txt"
  write: ["$PROJECT/**", "${folder}/cache/**"]
  deny_write: ["${folder}/cache/locked"]
`;
}

describe.each(everyActor())("what a world sees of the home folder, as $kind", (actor) => {
  let home: HomeFolder;
  let broker: TestBroker;
  beforeAll(async () => {
    home = new HomeFolder(actor);
    home.write(".ssh/id_ed25519", "private key");
    home.write(".sshfoo/id_ed25519", "prefix neighbour");
    home.write("real/secret", "linked secret");
    home.write("deep/a/b/c.pem", "certificate");
    home.write("deep/a/b/c.txt", "text");
    home.write("one.txt", "one");
    home.write("three.txt", "three");
    home.write("cache/file", "cached");
    home.write("cache/locked", "locked");
    symlinkSync(join(home.path, "real"), join(home.path, "link"));
    symlinkSync(join(home.path, ".ssh"), join(home.path, "way-in"));
    broker = await TestBroker.start(actor, { policies: { default: policyFor(home.path, "enforce") } });
  });
  afterAll(async () => {
    await broker.stop();
    home.remove();
  });

  async function seen(path: string): Promise<string> {
    return (await broker.run(`cat ${path} 2>&1; true`)).stdout;
  }

  test("a denied folder is not there by any name, and a prefix neighbour is", async () => {
    for (const path of [".ssh/id_ed25519", "way-in/id_ed25519", "./.sshfoo/../.ssh/id_ed25519"])
      expect(await seen(join(home.path, path))).not.toContain("private key");
    expect((await broker.run(`ls -a ${home.path}`)).stdout).not.toMatch(/^\.ssh$/m);
    expect(await seen(`/proc/self/root${home.path}/.ssh/id_ed25519`)).not.toContain("private key");
    expect(await seen(join(home.path, ".sshfoo/id_ed25519"))).toBe("prefix neighbour");
  });

  test("a denied link is not there, and neither is what it leads to", async () => {
    expect(await seen(join(home.path, "link/secret"))).not.toContain("linked secret");
    expect(await seen(join(home.path, "real/secret"))).not.toContain("linked secret");
  });

  test("a pattern hides what it matches at any depth, and nothing else", async () => {
    expect(await seen(join(home.path, "deep/a/b/c.pem"))).not.toContain("certificate");
    expect((await broker.run(`ls ${home.path}/deep/a/b`)).stdout).toBe("c.txt\n");
    expect(await seen(join(home.path, "one.txt"))).not.toBe("one");
    expect(await seen(join(home.path, "three.txt"))).toBe("three");
  });

  test("a denied name that did not exist stays hidden when the host makes it, and nothing was made to hide it", async () => {
    await broker.run("true");
    expect(existsSync(join(home.path, "later"))).toBe(false);
    home.write("later/key", "later key");
    expect(await seen(join(home.path, "later/key"))).not.toContain("later key");
  });

  test("a host rename onto a denied name does not uncover it", async () => {
    const { world_id } = await broker.run("true");
    home.write("new-ssh/id_ed25519", "other private key");
    renameSync(join(home.path, ".ssh"), join(home.path, "old"));
    renameSync(join(home.path, "new-ssh"), join(home.path, ".ssh"));
    try {
      expect(await seen(join(home.path, ".ssh/id_ed25519"))).not.toContain("other private key");
      expect((await broker.run("true")).world_id).toBe(world_id);
    } finally {
      rmSync(join(home.path, ".ssh"), { recursive: true });
      renameSync(join(home.path, "old"), join(home.path, ".ssh"));
    }
  });

  test("a host's socket in the home folder, in the project or in a writable folder does not connect; the world's own does", async () => {
    needs("python3");
    const python = (path: string): string =>
      `python3 -c 'import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print(s.recv(9).decode())' ${path} 2>&1; true`;
    for (const folder of [home.path, join(home.path, "cache"), broker.project]) {
      const path = join(folder, "agent.sock");
      const server = spawnAs(
        actor,
        [
          "python3",
          "-c",
          'import socket,sys\ns=socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(4); print("up",flush=True)\nwhile True:\n c,_=s.accept(); c.send(b"reached"); c.close()',
          path,
        ],
        { stdio: ["ignore", "pipe", "inherit"] },
      );
      try {
        await new Promise((resolve) => server.stdout?.once("data", resolve));
        // A world of its own, made after the socket was.
        const ran = await broker.run({ cmd: python(path), agent_id: `sock-${folder.length}` });
        expect(ran.stdout).not.toContain("reached");
      } finally {
        server.kill("SIGKILL");
        rmSync(path, { force: true });
      }
    }
    const own =
      "import socket,os\ns=socket.socket(socket.AF_UNIX); s.bind('own.sock'); s.listen(1)\nc=socket.socket(socket.AF_UNIX); c.connect('own.sock'); a,_=s.accept(); a.send(b'reached'); print(c.recv(9).decode()); os.unlink('own.sock')";
    broker.write(join(broker.project, "own.py"), own);
    expect((await broker.run("python3 own.py")).stdout).toBe("reached\n");
  });

  test("what the policy lets write there reaches the host, and what it denies in it does not", async () => {
    await broker.run(
      `cd ${home.path}; echo new > cache/new; echo over > cache/locked; mv cache/locked cache/x; echo stray > stray; true`,
    );
    expect(readFileSync(join(home.path, "cache/new"), "utf8")).toBe("new\n");
    expect(readFileSync(join(home.path, "cache/locked"), "utf8")).toBe("locked");
    expect(existsSync(join(home.path, "stray"))).toBe(false);
  });

  test("SUBSTRATE_HOME is not there, not even its name", async () => {
    const inside = new HomeFolder(actor);
    const other = await TestBroker.start(actor, { folder: inside.path });
    try {
      expect((await other.run(`ls -a ${inside.path}; ls -d ${inside.path}/home; true`)).stdout).toBe(
        ".\n..\nproject\n",
      );
    } finally {
      await other.stop();
      inside.remove();
    }
  });
});

describe.each(everyActor())("a write outside of fs.write in observe mode, as $kind", (actor) => {
  test("fails as under enforce, and neither the host nor a later command sees a part of it", async () => {
    const home = new HomeFolder(actor);
    const kept = home.write("kept.txt", "as it was");
    home.write("cache/there", "");
    const broker = await TestBroker.start(actor, {
      policies: { default: policyFor(home.path, "observe") },
    });
    try {
      const stray = join(home.path, "new/stray.txt");
      const ran = await broker.run(
        `mkdir ${home.path}/new; echo over > ${kept}; echo x > own; cat ${kept} own`,
      );
      expect(ran.stdout).toBe("as it wasx\n");
      expect(ran.stderr.match(/Read-only file system/g)).toHaveLength(2);
      expect(ran.fs_diff).toMatchObject({ writes: ["own"], world_only: [] });
      expect(existsSync(join(home.path, "new"))).toBe(false);
      expect(readFileSync(kept, "utf8")).toBe("as it was");
      expect((await broker.run(`cat ${stray}`)).exit).not.toBe(0);
      expect(await broker.run(`cat ${home.path}/.ssh/id 2>&1; true`)).toMatchObject({ exit: 0 });
      const beside = await broker.run(`echo x > ${home.path}/cache/file`);
      expect(beside).toMatchObject({ exit: 0, notices: [] });
      expect(existsSync(join(home.path, "cache/file"))).toBe(true);
    } finally {
      await broker.stop();
      home.remove();
    }
  });
});
