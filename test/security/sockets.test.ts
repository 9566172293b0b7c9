import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestBroker, eventually } from "../support/broker/broker.ts";
import { recordSkip } from "../support/run/skips.ts";
import { type Actor, currentUser, everyActor, runAs, spawnAs } from "../support/users/users.ts";

// A host's services at the places where such services listen.

const SOURCE = fileURLToPath(new URL("host-sockets.c", import.meta.url));

/** With a /run of its own: the host's programs meet no service of ours there, and a kill of everything leaves none. */
const OWN_RUN = [
  ..."unshare --mount --propagation private -- /bin/sh -c".split(" "),
  'mount -t tmpfs -o mode=755 substrate-test /run && exec "$@"',
  "sh",
];

class HostSockets {
  readonly paths: readonly string[];
  readonly abstract: string;
  /** Places that only root can make. */
  readonly left: readonly string[];
  came = 0;
  readonly #folder: string;
  readonly #process: ChildProcess;

  private constructor(actor: Actor) {
    this.paths = usualPlaces(actor).filter((path) => mayMake(path, actor));
    this.left = usualPlaces(actor).filter((path) => !this.paths.includes(path));
    this.abstract = `substrate-test-${process.pid}-${actor.uid}`;
    this.#folder = mkdtempSync(join(tmpdir(), "substrate-sockets-"));
    const program = join(this.#folder, "sockets");
    buildSockets(program);
    // Root may listen everywhere: the sockets are open to all.
    const isRoot = currentUser().uid === 0;
    this.#process = spawnAs(
      isRoot ? currentUser() : actor,
      [program, "serve", this.abstract, ...this.paths],
      // It ends, and removes what it made, when this process does: the pipe closes.
      { cwd: "/", stdio: ["pipe", "pipe", "pipe"], within: isRoot ? OWN_RUN : [] },
    );
  }

  static async open(actor: Actor): Promise<HostSockets> {
    const sockets = new HostSockets(actor);
    let said = "";
    sockets.#process.stderr?.on("data", (bytes: Buffer) => {
      said += bytes.toString();
      process.stderr.write(bytes);
    });
    await new Promise<void>((resolve, reject) => {
      sockets.#process.once("close", (code, signal) =>
        reject(new Error(`The sockets were not made, ${code ?? signal}: ${said}`)),
      );
      sockets.#process.stdout?.on("data", (bytes: Buffer) => {
        if (bytes.toString().includes("up")) resolve();
        sockets.came += bytes.toString().split("came").length - 1;
      });
    });
    return sockets;
  }

  /** Command words that start a program in the mount namespace of the sockets. */
  get enter(): readonly string[] {
    return currentUser().uid === 0 ? ["nsenter", `--mount=/proc/${this.#process.pid}/ns/mnt`, "--"] : [];
  }

  async close(): Promise<void> {
    const ended = once(this.#process, "exit");
    this.#process.stdin?.end();
    await ended;
    rmSync(this.#folder, { recursive: true });
  }
}

describe.each(everyActor())("Unix sockets, as $kind", (actor) => {
  let host: HostSockets;
  let broker: TestBroker;
  const words = (): readonly string[] => [host.abstract, ...host.paths];
  beforeAll(async () => {
    host = await HostSockets.open(actor);
    broker = await TestBroker.start(actor, {
      policies: { default: "id: default\nname: x\nmode: enforce\n" },
      within: host.enter,
    });
    buildSockets(join(broker.project, "sockets"));
    for (const path of host.left)
      recordSkip({
        what: `a fake service at ${path}, as ${actor.kind}`,
        why: "only root can make it",
      });
  });
  afterAll(async () => {
    await broker.stop();
    await host.close();
  });

  test("of docker, D-Bus, systemd, agents, displays and tmux are not reached, by path, abstract or datagram; on the host they are", async () => {
    expect(host.paths.length).toBeGreaterThan(5);
    const inside = await broker.run({ argv: ["./sockets", "dial", ...words()] });
    expect(inside.stdout).toBe("0\n");
    expect(host.came).toBe(0);
    const program = join(broker.project, "sockets");
    const client = await runAs(actor, [program, "dial", ...words()], { cwd: "/", within: host.enter });
    expect(client.stdout).toBe(`${2 * words().length}\n`);
  });

  test("are not reached by an isolated command, in observe mode, or through a link or /proc either", async () => {
    const observed = await TestBroker.start(actor, {
      policies: { default: "id: default\nname: x\ncommands:\n  isolated: ['touch *']\n" },
      within: host.enter,
    });
    const before = host.came;
    try {
      buildSockets(join(observed.project, "sockets"));
      const links = host.paths.map(
        (path, at) => `ln -s /proc/self/root${path} l${at}; ln -s /proc/1/root${path} m${at}`,
      );
      const cmd = `${links.join("; ")}; ./sockets dial ${words().join(" ")} $(ls -d l* m*); touch held`;
      expect((await observed.run(cmd)).stdout).toBe("0\n");
      expect(host.came).toBe(before);
    } finally {
      await observed.stop();
    }
  });

  test("of a world's own work, and pass descriptors", async () => {
    expect((await broker.run("./sockets own")).stdout).toBe("own own own \n");
  });

  test("of one world are not another's when they are abstract or lie in /tmp", async () => {
    await broker.run({
      cmd: "sleep 3 | ./sockets serve w /tmp/w.sock > listening & while ! [ -s listening ]; do sleep 0.02; done",
      background: "keep",
    });
    const dial = "./sockets dial w /tmp/w.sock";
    expect((await broker.run(dial)).stdout).toBe("4\n");
    expect((await broker.run({ cmd: dial, agent_id: "other" })).stdout).toBe("0\n");
  });
});

test("a fake service of a killed run goes with it, and takes nobody's place", async () => {
  const folder = mkdtempSync(join(tmpdir(), "substrate-sockets-"));
  const program = join(folder, "sockets");
  const mine = join(folder, "new/mine.sock");
  const theirs = join(folder, "theirs.sock");
  try {
    buildSockets(program);
    const words = JSON.stringify(["serve", `substrate-test-killed-${process.pid}`, mine]);
    const run = `const child = require("node:child_process").spawn("${program}", ${words}, { stdio: ["pipe", "pipe", "inherit"] });
child.stdout.once("data", () => process.kill(process.pid, "SIGKILL"));`;
    const killed = spawn(process.execPath, ["-e", run], { stdio: "inherit" });
    expect(await once(killed, "exit")).toEqual([null, "SIGKILL"]);
    expect(await eventually(() => !existsSync(dirname(mine)), 10_000)).toBe(true);
    writeFileSync(theirs, "theirs");
    const taken = spawnSync(program, ["serve", "substrate-test-taken", theirs], { encoding: "utf8" });
    expect(taken).toMatchObject({ status: 1, stderr: expect.stringContaining("Address already in use") });
    expect(readFileSync(theirs, "utf8")).toBe("theirs");
  } finally {
    rmSync(folder, { recursive: true });
  }
});

/** Where docker, D-Bus, systemd, agents, displays and terminals of a user listen. */
function usualPlaces({ uid, home }: Actor): readonly string[] {
  const run = `/run/user/${uid}`;
  return [
    "/run/docker.sock",
    "/run/podman/podman.sock",
    "/run/containerd/containerd.sock",
    "/run/dbus/system_bus_socket",
    "/run/systemd/private",
    "/run/systemd/journal/socket",
    `${run}/bus`,
    `${run}/systemd/private`,
    `${run}/gnupg/S.gpg-agent`,
    `${run}/wayland-0`,
    `${run}/ssh-agent.socket`,
    `${run}/docker.sock`,
    `/tmp/.X11-unix/X${uid + 4000}`,
    `/tmp/tmux-${uid}/substrate-test`,
    `/tmp/ssh-substrate-test-${uid}/agent.1`,
    join(home, ".gnupg/S.gpg-agent"),
    join(home, ".ssh/agent.sock"),
    join(home, ".docker/run/docker.sock"),
    join(home, ".substrate-test/agent.sock"),
  ];
}

/** Compiles `serve`, `dial` and `own` (host-sockets.c). */
function buildSockets(path: string): void {
  const made = spawnSync("cc", ["-Wall", "-Wextra", "-Werror", "-O1", "-static", "-o", path, SOURCE]);
  if (made.status !== 0) throw new Error(`'${SOURCE}' does not compile: ${made.stderr.toString()}`);
}

/** An ordinary user makes none where other users' programs look. */
function mayMake(path: string, { home }: Actor): boolean {
  if (currentUser().uid === 0) return true;
  return path.startsWith(home) || (path.startsWith("/tmp/") && dirname(path) !== "/tmp/.X11-unix");
}
