/** A host's services at the places where such services listen, made for a test where nothing is. */
import type { ChildProcess } from "node:child_process";
import { existsSync, rmdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Actor } from "../actors.ts";
import { currentUser, spawnAs } from "../users.ts";

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
    `/tmp/tmux-${uid}/default`,
    `/tmp/ssh-substrate-test-${uid}/agent.1`,
    join(home, ".gnupg/S.gpg-agent"),
    join(home, ".ssh/agent.sock"),
    join(home, ".docker/run/docker.sock"),
    join(home, ".substrate-test/agent.sock"),
  ];
}

/** One stream and one datagram socket at each place (`PATH` and `PATH.dgram`), and two abstract ones; says who came. */
const SERVER = `
import os, select, socket, sys
watched = []
def listen(kind, name):
    s = socket.socket(socket.AF_UNIX, kind)
    s.bind(name)
    if not name.startswith("\\0"): os.chmod(name, 0o777)
    if kind == socket.SOCK_STREAM: s.listen(8)
    watched.append(s)
for path in sys.argv[2:]:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    listen(socket.SOCK_STREAM, path)
    listen(socket.SOCK_DGRAM, path + ".dgram")
listen(socket.SOCK_STREAM, "\\0" + sys.argv[1])
listen(socket.SOCK_DGRAM, "\\0" + sys.argv[1] + ".dgram")
print("up", flush=True)
while True:
    for s in select.select(watched, [], [])[0]:
        if s.type == socket.SOCK_STREAM:
            c, _ = s.accept()
            c.close()
        else: s.recv(64)
        print("came", flush=True)
`;

/** Tries the same list: prints how many answered. */
export const CLIENT = `
import socket, sys
reached = 0
for path in sys.argv[2:] + ["\\0" + sys.argv[1]]:
    for kind, name in ((socket.SOCK_STREAM, path), (socket.SOCK_DGRAM, path + ".dgram")):
        s = socket.socket(socket.AF_UNIX, kind)
        try:
            s.connect(name)
            s.send(b"hello")
            reached += 1
        except OSError: pass
print(reached)
`;

export class HostSockets {
  readonly paths: readonly string[];
  readonly abstract: string;
  /** Places that the host has services at, or that only root could make. */
  readonly left: readonly string[];
  came = 0;
  readonly #made: readonly string[];
  readonly #process: ChildProcess;

  private constructor(actor: Actor) {
    const free = usualPlaces(actor).filter((path) => !existsSync(path) && mayMake(path, actor));
    this.left = usualPlaces(actor).filter((path) => !free.includes(path));
    this.paths = free;
    this.abstract = `substrate-test-${process.pid}-${actor.uid}`;
    this.#made = free.map(dirname).filter((folder) => !existsSync(folder));
    const argv = ["python3", "-c", SERVER, this.abstract, ...free];
    // Root may listen everywhere: the sockets are open to all.
    this.#process = spawnAs(currentUser().uid === 0 ? currentUser() : actor, argv, {
      stdio: ["ignore", "pipe", "inherit"],
    });
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

  close(): void {
    this.#process.removeAllListeners("exit");
    this.#process.kill("SIGKILL");
    for (const path of this.paths) for (const each of [path, `${path}.dgram`]) rmSync(each, { force: true });
    for (const folder of [...new Set(this.#made)]) removeEmpty(folder);
  }
}

function mayMake(path: string, actor: Actor): boolean {
  return currentUser().uid === 0 || path.startsWith(actor.home) || path.startsWith("/tmp/");
}

/** And the folders above it that were made with it. */
function removeEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // Somebody else's files are in it, ignoring: then it is not ours to remove.
    return;
  }
  if (dirname(folder) !== "/run" && dirname(folder) !== "/tmp") removeEmpty(dirname(folder));
}
