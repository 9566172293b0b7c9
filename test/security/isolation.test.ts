import { existsSync, mkdirSync, readFileSync, readlinkSync, realpathSync, symlinkSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { everyActor } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";

const POLICY = `
id: default
name: Isolation
mode: enforce
fs:
  deny_read: ["$PROJECT/secret", "$PROJECT/vault"]
  deny_write: ["$PROJECT/.git/hooks", "$PROJECT/frozen.txt"]
`;

describe.each(everyActor())("a world, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    broker.write(join(broker.folder, "outside.txt"), "outside");
    broker.write(join(broker.project, "secret"), "secret words");
    broker.write(join(broker.project, "vault/key"), "secret key");
    broker.write(join(broker.project, "vaulted/key"), "plain key");
    broker.write(join(broker.project, ".git/hooks/pre-commit.sample"), "");
    // A git folder without settings would be one that somebody is making, and closed to commands for a second.
    broker.write(join(broker.project, ".git/config"), "[core]\n\tbare = false\n");
    broker.write(join(broker.project, ".git/HEAD"), "ref: refs/heads/main\n");
    broker.write(join(broker.project, "frozen.txt"), "frozen");
  });
  afterAll(() => broker.stop());

  test("writes in the project reach the host, and writes beside it do not", async () => {
    await broker.run("echo inside > inside.txt; echo stray > ../outside.txt; echo stray > ../stray.txt");
    expect(readFileSync(join(broker.project, "inside.txt"), "utf8")).toBe("inside\n");
    expect(readFileSync(join(broker.folder, "outside.txt"), "utf8")).toBe("outside");
    expect(existsSync(join(broker.folder, "stray.txt"))).toBe(false);
  });

  test("neither a symbolic link, nor a hard link, nor a descriptor of /proc leads a write outside", async () => {
    symlinkSync(join(broker.folder, "outside.txt"), join(broker.project, "link"));
    await broker.run(
      "echo stray > link; ln ../outside.txt hard && echo stray > hard; (exec 3<../outside.txt; echo stray > /proc/self/fd/3); echo stray > /proc/1/root$PWD/../outside.txt; echo stray > /proc/self/root$PWD/../outside.txt; true",
    );
    expect(readFileSync(join(broker.folder, "outside.txt"), "utf8")).toBe("outside");
  });

  test.each([
    "/etc/substrate-test",
    "/usr/substrate-test",
    "/root/substrate-test",
    "/var/lib/substrate-test",
    "/boot/substrate-test",
  ])("%s cannot be written", async (path) => {
    await broker.run(`mkdir -p ${path}; echo x > ${path}/file; true`);
    expect(existsSync(path)).toBe(false);
  });

  test("/tmp, /var/tmp, /run and /dev/shm are the world's own, and work", async () => {
    for (const folder of ["/tmp", "/var/tmp", "/dev/shm"]) {
      const name = `${folder}/substrate-${process.pid}`;
      expect(await broker.run(`echo own > ${name} && cat ${name}`)).toMatchObject({
        stdout: "own\n",
        exit: 0,
      });
      expect(existsSync(name)).toBe(false);
    }
    const { stdout } = await broker.run("ls -A /run");
    expect(stdout).toBe("");
  });

  test("a denied file cannot be read, its prefix neighbour can", async () => {
    const { stdout } = await broker.run("cat secret vault/key ./vault/../secret; ls vault; cat vaulted/key");
    expect(stdout).toBe("plain key");
  });

  test("what may not be written is not written, and its neighbours are", async () => {
    await broker.run("echo evil > .git/hooks/pre-commit; echo x > frozen.txt; echo ok > .git/description");
    expect(existsSync(join(broker.project, ".git/hooks/pre-commit"))).toBe(false);
    expect(readFileSync(join(broker.project, "frozen.txt"), "utf8")).toBe("frozen");
    expect(readFileSync(join(broker.project, ".git/description"), "utf8")).toBe("ok\n");
  });

  test("masking leaves nothing in the person's tree", () => {
    expect(readFileSync(join(broker.project, "secret"), "utf8")).toBe("secret words");
    expect(readFileSync(join(broker.project, "vault/key"), "utf8")).toBe("secret key");
  });

  test("SUBSTRATE_HOME cannot be looked into, and no broker can be reached", async () => {
    const { stdout } = await broker.run(
      `ls -A ${broker.home}; cat ${broker.home}/policies/default.yaml; cat ${broker.home}/trace/trace.jsonl; true`,
    );
    expect(stdout).toBe("");
    const connect = `const s = require("node:net").connect("${broker.home}/sock/control.sock"); s.on("connect", () => { console.log("reached"); process.exit(); }); s.on("error", () => console.log("refused"));`;
    expect((await broker.run({ argv: [process.execPath, "-e", connect] })).stdout).toBe("refused\n");
  });

  test("only the world's own processes can be seen, and the supervisor cannot be inspected", async () => {
    const { stdout } = await broker.run(
      "cat /proc/[0-9]*/comm; cat /proc/1/environ /proc/1/maps; ls -l /proc/1/fd /proc/1/root; true",
    );
    expect(stdout).not.toMatch(/vitest|systemd|node/);
    expect(stdout).not.toContain("SUBSTRATE_HOME");
    expect(await broker.run("cat /proc/1/environ")).toMatchObject({ stdout: "" });
    expect((await broker.run("cat /proc/1/environ")).exit).not.toBe(0);
  });

  test("a signal cannot end the supervisor", async () => {
    const { world_id: before } = await broker.run("true");
    await broker.run("kill -9 1; kill -TERM 1; true");
    expect(await broker.run("true")).toMatchObject({ world_id: before });
  });

  test("there are no capabilities, no new privileges, and no way to get some", async () => {
    const { stdout } = await broker.run("grep -E '^(Cap|NoNewPrivs)' /proc/self/status");
    for (const line of stdout.trim().split("\n")) expect(line).toMatch(/^(Cap...:\t0{16}|NoNewPrivs:\t1)$/);
    expect((await broker.run("mount -t tmpfs none /mnt")).exit).not.toBe(0);
    expect((await broker.run("umount /tmp")).exit).not.toBe(0);
    expect((await broker.run("mount -o remount,rw /")).exit).not.toBe(0);
  });

  // Opened and never written: what a written word would do to this machine is not worth the proof.
  test("the machine's kernel switches cannot be opened for writing, and a file of the project can", async () => {
    const switches = [
      "/proc/sys/kernel/core_pattern",
      "/proc/sys/kernel/pid_max",
      "/proc/sysrq-trigger",
      "/sys/kernel/mm/ksm/run",
    ].filter((path) => existsSync(path));
    expect(switches.length).toBeGreaterThan(1);
    const { stdout } = await broker.run(
      `for file in ${switches.join(" ")} ./plain; do (: >> $file) 2>/dev/null && echo $file; done; true`,
    );
    expect(stdout).toBe("./plain\n");
  });

  test("/dev holds harmless devices that work, and no disk", async () => {
    const { stdout } = await broker.run("ls /dev");
    const known = [
      "fd",
      "full",
      "null",
      "ptmx",
      "pts",
      "random",
      "shm",
      "stderr",
      "stdin",
      "stdout",
      "tty",
      "urandom",
      "zero",
    ];
    expect(stdout.trim().split("\n").sort()).toEqual(known);
    expect(
      await broker.run("head -c 3 /dev/zero | wc -c; echo x > /dev/null; head -c 4 /dev/urandom | wc -c"),
    ).toMatchObject({ stdout: "3\n4\n", exit: 0 });
    expect((await broker.run("mknod disk b 254 0")).exit).not.toBe(0);
    // The folders that the world keeps its own mounts in are covered: no walk of a command fails on them.
    expect(await broker.run("find /dev -mindepth 1 -path '*/.*/*'")).toMatchObject({
      exit: 0,
      stdout: "",
      stderr: "",
    });
  });

  test("the host's localhost is not the world's, which works", async () => {
    let seen = 0;
    const server = createServer(() => {
      seen += 1;
    });
    const port = await new Promise<number>((resolve) => {
      server.listen(0, "127.0.0.1", () => {
        const address = server.address();
        resolve(typeof address === "object" && address !== null ? address.port : 0);
      });
    });
    const dial = `require("node:net").connect(${port}, "127.0.0.1").on("connect", () => console.log("connected")).on("error", (e) => console.log(e.code))`;
    expect(await broker.run({ argv: [process.execPath, "-e", dial] })).toMatchObject({
      stdout: "ECONNREFUSED\n",
    });
    expect(seen).toBe(0);
    server.close();
    const own = `const s = require("node:net").createServer((c) => c.end("own")).listen(0, "127.0.0.1", () => require("node:net").connect(s.address().port).on("data", (d) => { console.log(String(d)); process.exit(); }))`;
    expect(await broker.run({ argv: [process.execPath, "-e", own] })).toMatchObject({ stdout: "own\n" });
  });

  test("commands inherit no descriptor but their three", async () => {
    expect(await broker.run("ls /proc/self/fd | sort -n | tr '\\n' ' '")).toMatchObject({
      stdout: "0 1 2 3 ",
    });
  });

  test("the identity inside is the one outside", async () => {
    expect(await broker.run("id -u; id -g")).toMatchObject({ stdout: `${actor.uid}\n${actor.gid}\n` });
  });

  test("paths inside equal paths outside, links included", async () => {
    mkdirSync(join(broker.project, "deep"), { recursive: true });
    broker.write(join(broker.project, "deep/file"), "");
    symlinkSync(join(broker.project, "deep"), join(broker.folder, "way"));
    const { stdout } = await broker.run({ cmd: "pwd", cwd: join(broker.folder, "way") });
    expect(stdout.trim()).toBe(realpathSync(join(broker.project, "deep")));
  });

  test("the vector says what was achieved, and calls nothing on that is not", async () => {
    const { isolation } = await broker.run("true");
    expect(isolation).toMatchObject({
      backend: "linux",
      mount: "on",
      pid: "on",
      net: "on",
      ipc: "on",
      uts: "on",
      no_new_privs: "on",
      capabilities: "none",
    });
    expect(isolation.user.startsWith(actor.uid === 0 ? "off" : "on")).toBe(true);
    expect(isolation.cgroup).toMatch(/^(on$|degraded: no |off: )/);
    expect(isolation.exec_gate).toBe("on");
    const names = ["mnt", "pid", "net", "ipc", "uts"];
    const { stdout } = await broker.run(`for n in ${names.join(" ")}; do readlink /proc/self/ns/$n; done`);
    const host = names.map((name) => readlinkSync(`/proc/self/ns/${name}`));
    for (const [at, inside] of stdout.trim().split("\n").entries()) expect(inside).not.toBe(host[at]);
  });
});

describe.each(everyActor().filter(({ uid }) => uid !== 0))("a world of $kind", (actor) => {
  test("refuses nested user namespaces", async () => {
    const broker = await TestBroker.start(actor);
    try {
      expect((await broker.run("unshare --user true")).exit).not.toBe(0);
    } finally {
      await broker.stop();
    }
  });
});
