/** A stand-in for systemd around one broker: it holds the sockets, hands them over, and hears the broker's messages. */
import type { ChildProcess } from "node:child_process";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { installationFor } from "../broker/installation.ts";
import { spawnAs, type TestUser } from "../users/users.ts";

/** One line in: start the broker. Lines out: messages, whether its main process sent them, and its end. */
const PROGRAM = `
import os, socket, struct, sys, threading
home, name, agents = sys.argv[1], sys.argv[2], sys.argv[3].split()
front = sys.argv[4:]
os.makedirs(home + "/sock/agents", mode=0o700, exist_ok=True)
listening = []
for each in ["control", "agent"] + ["agents/" + agent for agent in agents]:
    one = socket.socket(socket.AF_UNIX)
    one.bind(home + "/sock/" + each + ".sock")
    one.listen(100)
    listening.append(one)
hears = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
hears.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
hears.bind("\\0" + name[1:] if name[0] == "@" else name)
pid = 0
def say(*words): print(*words, flush=True)
def hear():
    while True:
        text, about, _, _ = hears.recvmsg(4096, 256)
        sender = struct.unpack("3i", about[0][2])[0]
        say("told", text.decode(), "main" if sender == pid else "other")
threading.Thread(target=hear, daemon=True).start()
for line in sys.stdin:
    if pid: os.waitpid(pid, 0)
    pid = os.fork()
    if pid == 0:
        # Node makes its own non-blocking, which would be the manager's too.
        for fd in 0, 1: os.dup2(os.open("/dev/null", os.O_RDWR), fd)
        high = [os.dup(one.fileno()) for one in listening]
        high = [os.dup2(fd, 100 + at) for at, fd in enumerate(high)]
        for at, fd in enumerate(high): os.dup2(fd, 3 + at)
        os.closerange(3 + len(high), 200)
        os.environ.update(LISTEN_FDS=str(len(high)), LISTEN_PID=str(os.getpid()), NOTIFY_SOCKET=name,
                          WATCHDOG_USEC="300000", WATCHDOG_PID=str(os.getpid()), SUBSTRATE_HOME=home)
        os.execv(front[0], front)
    say("pid", pid)
    def wait(child):
        info = os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        say("ended", info.si_status)
    threading.Thread(target=wait, args=[pid], daemon=True).start()
`;

export class StandInManager {
  readonly #process: ChildProcess;
  readonly #lines: string[] = [];
  readonly #wakes: (() => void)[] = [];

  private constructor(process: ChildProcess) {
    this.#process = process;
    if (process.stdout === null) throw new Error("No standard output");
    createInterface(process.stdout).on("line", (line) => {
      this.#lines.push(line);
      for (const wake of this.#wakes.splice(0)) wake();
    });
  }

  /** Opens the sockets; starts nothing yet. `notify`: a path, or an abstract name behind `@`. `verb`: what the unit starts. */
  static async open(
    user: TestUser,
    home: string,
    notify: string,
    agents: readonly string[],
    verb: readonly string[] = ["broker", "start", "--foreground", "--service"],
  ): Promise<StandInManager> {
    const { root } = await installationFor(user);
    const front = [join(root, ".build/substrate"), ...verb];
    const words = ["python3", "-c", PROGRAM, home, notify, agents.join(" "), ...front];
    return new StandInManager(
      spawnAs(user, words, { cwd: dirname(home), stdio: ["pipe", "pipe", "inherit"] }),
    );
  }

  /** Returns the pid once the broker says READY=1. */
  async start(): Promise<number> {
    const from = this.#lines.length;
    this.startOnly();
    await this.line("told READY=1", from);
    return Number((await this.line("pid ", from)).slice("pid ".length));
  }

  startOnly(): void {
    this.#process.stdin?.write("start\n");
  }

  /** How many lines were said so far. */
  get now(): number {
    return this.#lines.length;
  }

  /** The first line with this beginning that was said after the first `from`. */
  async line(begin: string, from = 0): Promise<string> {
    for (;;) {
      const found = this.#lines.slice(from).find((line) => line.startsWith(begin));
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => this.#wakes.push(resolve));
    }
  }

  close(): void {
    this.#process.kill("SIGKILL");
  }
}
