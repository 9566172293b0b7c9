/** A host's services at the places where such services listen. */
import { type ChildProcess, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Actor } from "../actors.ts";
import { currentUser, spawnAs } from "../users.ts";

const SOURCE = fileURLToPath(new URL("host-sockets.c", import.meta.url));

/** With a /run of its own: the host's programs meet no service of ours there, and a kill of everything leaves none. */
const OWN_RUN = [
  ..."unshare --mount --propagation private -- /bin/sh -c".split(" "),
  'mount -t tmpfs -o mode=755 substrate-test /run && exec "$@"',
  "sh",
];

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
export function buildSockets(path: string): void {
  const made = spawnSync("cc", ["-Wall", "-Wextra", "-Werror", "-O1", "-static", "-o", path, SOURCE]);
  if (made.status !== 0) throw new Error(`'${SOURCE}' does not compile: ${made.stderr.toString()}`);
}

export class HostSockets {
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
      { cwd: "/", stdio: ["pipe", "pipe", "inherit"], within: isRoot ? OWN_RUN : [] },
    );
  }

  static async open(actor: Actor): Promise<HostSockets> {
    const sockets = new HostSockets(actor);
    await new Promise<void>((resolve, reject) => {
      sockets.#process.once("exit", () => reject(new Error("The sockets were not made")));
      sockets.#process.stdout?.on("data", (bytes: Buffer) => {
        if (bytes.toString().includes("up")) resolve();
        sockets.came += bytes.toString().split("came").length - 1;
      });
    });
    return sockets;
  }

  /** Words before a program that is to find them all. */
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

/** An ordinary user makes none where other users' programs look. */
function mayMake(path: string, { home }: Actor): boolean {
  if (currentUser().uid === 0) return true;
  return path.startsWith(home) || (path.startsWith("/tmp/") && dirname(path) !== "/tmp/.X11-unix");
}
