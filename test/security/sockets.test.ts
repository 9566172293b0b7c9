import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../actors.ts";
import { TestBroker } from "../broker.ts";
import { recordSkip } from "../skips.ts";
import { runAs } from "../users.ts";
import { CLIENT, HostSockets } from "./host-sockets.ts";

/** Passes a descriptor to itself over an abstract pair, a named one, and a socket pair. */
const OWN = `
import array, os, socket
def passed(a, b):
    r, w = os.pipe()
    a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [r]))])
    _, fds, _, _ = b.recvmsg(1, socket.CMSG_LEN(4))
    os.write(w, b"own ")
    return os.read(array.array("i", fds[0][2])[0], 9).decode()
text = passed(*socket.socketpair())
for name in ("own.sock", "\\0own"):
    s = socket.socket(socket.AF_UNIX)
    s.bind(name)
    s.listen(1)
    c = socket.socket(socket.AF_UNIX)
    c.connect(name)
    text += passed(c, s.accept()[0])
os.unlink("own.sock")
print(text)
`;

describe.each(actors())("Unix sockets, as $kind", (actor) => {
  let host: HostSockets;
  let broker: TestBroker;
  const words = (): readonly string[] => [host.abstract, ...host.paths];
  beforeAll(async () => {
    host = await HostSockets.open(actor);
    broker = await TestBroker.start(actor, {
      policies: { default: "id: default\nname: x\nmode: enforce\n" },
    });
    broker.write(join(broker.project, "client.py"), CLIENT);
    broker.write(join(broker.project, "own.py"), OWN);
    for (const path of host.left)
      recordSkip({
        what: `a fake service at ${path}, as ${actor.kind}`,
        why: "something is there, or only root could make it",
      });
  });
  afterAll(async () => {
    await broker.stop();
    host.close();
  });

  test("of docker, D-Bus, systemd, agents, displays and tmux are not reached, by path, abstract or datagram; on the host they are", async () => {
    expect(host.paths.length).toBeGreaterThan(5);
    const inside = await broker.run({ argv: ["python3", "client.py", ...words()] });
    expect(inside.stdout).toBe("0\n");
    expect(host.came).toBe(0);
    const client = await runAs(actor, ["python3", "-c", CLIENT, ...words()], { cwd: "/" });
    expect(Number(client.stdout)).toBeGreaterThanOrEqual(
      2 * host.paths.filter((path) => path.startsWith(actor.home)).length + 2,
    );
  });

  test("are not reached by an isolated command, in observe mode, or through a link or /proc either", async () => {
    const observed = await TestBroker.start(actor, {
      policies: { default: "id: default\nname: x\ncommands:\n  isolated: ['touch *']\n" },
    });
    const before = host.came;
    try {
      observed.write(join(observed.project, "client.py"), CLIENT);
      const links = host.paths.map(
        (path, at) => `ln -s /proc/self/root${path} l${at}; ln -s /proc/1/root${path} m${at}`,
      );
      const cmd = `${links.join("; ")}; python3 client.py ${host.abstract} ${words().slice(1).join(" ")} $(ls -d l* m*); touch held`;
      expect((await observed.run(cmd)).stdout).toBe("0\n");
      expect(host.came).toBe(before);
    } finally {
      await observed.stop();
    }
  });

  test("of a world's own work, and pass descriptors", async () => {
    expect((await broker.run("python3 own.py")).stdout).toBe("own own own \n");
  });

  test("of one world are not another's when they are abstract or lie in /tmp", async () => {
    const listen = `import socket,time
for n in ("/tmp/w.sock", "\\0w"):
  s = socket.socket(socket.AF_UNIX); s.bind(n); s.listen(1); globals()[n] = s
open("listening", "w").close(); time.sleep(3)`;
    broker.write(join(broker.project, "listen.py"), listen);
    await broker.run({
      cmd: "python3 listen.py & while ! [ -e listening ]; do sleep 0.02; done",
      background: "keep",
    });
    const dial = `python3 -c "import socket
for n in ('/tmp/w.sock', '\\\\0w'):
  s = socket.socket(socket.AF_UNIX); print(s.connect_ex(n) == 0)"`;
    expect((await broker.run(dial)).stdout).toBe("True\nTrue\n");
    expect((await broker.run({ cmd: dial, agent_id: "other" })).stdout).toBe("False\nFalse\n");
  });
});
