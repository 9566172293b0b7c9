/** Services of the host in the network namespace of a broker, and who tries to reach them from inside, in Python. */
import type { ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { type Actor, spawnAs } from "../users/users.ts";

/**
 * `serve.py FOLDER NAME`: abstract sockets NAME, path sockets below FOLDER, and TCP on localhost. Says `up PORT`, and the kind of each
 * socket that somebody reached.
 */
export const SERVE = String.raw`
import os, selectors, socket, sys
folder, name = sys.argv[1:]
UNIX, KINDS = socket.AF_UNIX, {"stream": socket.SOCK_STREAM, "packets": socket.SOCK_SEQPACKET, "datagrams": socket.SOCK_DGRAM}
poll = selectors.DefaultSelector()
def add(one, label):
    poll.register(one, selectors.EVENT_READ, label)
for kind, number in KINDS.items():
    for where, address in ("abstract", "\0" + name + kind), ("path", os.path.join(folder, kind + ".sock")):
        one = socket.socket(UNIX, number)
        one.bind(address)
        if kind != "datagrams": one.listen(8)
        add(one, where + " " + kind)
tcp = socket.socket()
tcp.bind(("127.0.0.1", 0))
tcp.listen(8)
add(tcp, "tcp")
print("up", tcp.getsockname()[1], flush=True)
while True:
    for key, _ in poll.select():
        if key.fileobj.type == socket.SOCK_DGRAM: key.fileobj.recv(64)
        else: key.fileobj.accept()[0].close()
        print(key.data, flush=True)
`;

/** `reach.py NAME PORT`: in the same folder, tries every socket of `serve.py` in every way, and says how each attempt ended. */
export const REACH = String.raw`
import os, socket, sys
name, port = sys.argv[1:]
folder = os.getcwd()
UNIX, KINDS = socket.AF_UNIX, {"stream": socket.SOCK_STREAM, "packets": socket.SOCK_SEQPACKET, "datagrams": socket.SOCK_DGRAM}
def attempt(label, act):
    try:
        act()
        print(label, "reached")
    except OSError as error:
        print(label, error.errno)
def dial(kind, address):
    one = socket.socket(UNIX, KINDS[kind])
    one.connect(address)
    if kind == "datagrams": one.send(b"x")
def send(kind, address):
    socket.socket(UNIX, KINDS[kind]).sendto(b"x", address)
def message(kind, address):
    socket.socket(UNIX, KINDS[kind]).sendmsg([b"x"], [], 0, address)
def pair(kind, address):
    socket.socketpair(UNIX, KINDS[kind])[0].sendmsg([b"x"], [], 0, address)
def raw(kind, address):
    socket.socketpair(UNIX, socket.SOCK_RAW)[0].sendmsg([b"x"], [], 0, address)
for kind in KINDS:
    path = os.path.join(folder, kind + ".sock")
    for where, address in ("abstract", "\0" + name + kind), ("path", path), ("link", "/proc/self/root" + path):
        attempt(f"{where} {kind} connect", lambda: dial(kind, address))
        for act in (send, message, pair, raw) if kind == "datagrams" else ():
            attempt(f"{where} {kind} {act.__name__}", lambda: act(kind, address))
attempt("tcp", lambda: socket.create_connection(("127.0.0.1", int(port)), 5).close())
`;

/** Servers on sockets of the host that record each client. */
export class HostServices {
  readonly port: number;
  readonly name: string;
  readonly #process: ChildProcess;
  readonly #lines: string[];

  private constructor(child: ChildProcess, port: number, name: string, lines: string[]) {
    this.#process = child;
    this.port = port;
    this.name = name;
    this.#lines = lines;
  }

  /** Starts the services as a user, in the namespace that `within` enters. */
  static async start(actor: Actor, folder: string, within: readonly string[]): Promise<HostServices> {
    const name = `substrate-test-${randomUUID()}-`;
    const argv = ["python3", join(folder, "serve.py"), folder, name];
    const child = spawnAs(actor, argv, { cwd: folder, within, stdio: ["ignore", "pipe", "inherit"] });
    const lines: string[] = [];
    const port = await new Promise<number>((resolve, reject) => {
      child.once("exit", () => reject(new Error("The services did not start")));
      child.stdout?.on("data", (bytes: Buffer) => {
        lines.push(...bytes.toString().trim().split("\n"));
        const [, number] = /^up (\d+)$/.exec(lines[0] ?? "") ?? [];
        if (number !== undefined) resolve(Number(number));
      });
    });
    return new HostServices(child, port, name, lines);
  }

  /** The kinds of sockets reached, without duplicates. */
  get reached(): readonly string[] {
    return [...new Set(this.#lines.slice(1))].sort();
  }

  async stop(): Promise<void> {
    const ended = once(this.#process, "exit");
    this.#process.kill();
    await ended;
  }
}
