import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actorsWith } from "../support/run/needs.ts";
import { HostServices, REACH, SERVE } from "../support/network/host-services.ts";
import { NetworkPlace } from "../support/network/place.ts";
import { type Actor, type Ended, runAs } from "../support/users/users.ts";

// A world with the host's network (world.isolate_network: false): "the host's" is a namespace that the test has made.

const policy = (world: string, more = "mode: enforce"): string =>
  `id: default\nname: x\n${more}\nworld: { isolate_network: false${world} }\n`;

/** Policies whose commands have the host's network. */
const OPEN = {
  "a policy that enforces": policy(""),
  "one that only logs system calls": policy(", seccomp: log"),
  "one that observes": policy("", "mode: observe"),
  "one that isolates the command": policy("", 'mode: enforce\ncommands: { isolated: ["python3 *"] }'),
} as const;

const POLICIES = {
  default: OPEN["a policy that enforces"],
  narrow: "id: narrow\nname: x\nmode: enforce\nselectable: true\n",
  needs: "id: needs\nname: x\nselectable: true\nworld: { isolate_network: false, require: [net] }\n",
};

const ABSTRACT_SERVER = `
import socket, time
one = socket.socket(socket.AF_UNIX)
one.bind("\\0substrate-test-squatter")
try:
    one.listen(4)
    print("listens", flush=True)
    one.settimeout(3)
    one.accept()
except OSError as error:
    print(error.errno)
`;

const OWN_SERVER = `
import socket, sys, threading
one = socket.socket(socket.AF_UNIX)
one.bind(sys.argv[1])
one.listen(4)
if len(sys.argv) > 2:
    while True: one.accept()[0].close()
threading.Thread(target=one.accept, daemon=True).start()
socket.socket(socket.AF_UNIX).connect(sys.argv[1])
print("reached")
`;

const OWN_CLIENT = `
import socket, sys, time
for _ in range(200):
    try:
        socket.socket(socket.AF_UNIX).connect(sys.argv[1])
        print("reached"); break
    except FileNotFoundError: time.sleep(0.02)
    except OSError as error:
        print(error.errno); break
`;

/** A broker and services of the host in its network namespace. */
class Scene {
  readonly place: NetworkPlace;
  readonly services: HostServices;

  private constructor(place: NetworkPlace, services: HostServices) {
    this.place = place;
    this.services = services;
  }

  static async open(place: NetworkPlace, actor: Actor): Promise<Scene> {
    const { broker, internet } = place;
    const files = {
      "serve.py": SERVE,
      "reach.py": REACH,
      "abstract.py": ABSTRACT_SERVER,
      "own.py": OWN_SERVER,
      "client.py": OWN_CLIENT,
    };
    for (const [name, text] of Object.entries(files)) broker.write(join(broker.project, name), text);
    return new Scene(place, await HostServices.start(actor, broker.project, internet.enter));
  }

  get reach(): string {
    return `python3 reach.py ${this.services.name} ${this.services.port}`;
  }

  /** Runs a program of the host, beside the broker. */
  onHost(actor: Actor, argv: readonly string[]): Promise<Ended> {
    const { broker, internet } = this.place;
    return runAs(actor, argv, { cwd: broker.project, within: internet.enter });
  }
}

describe.each(actorsWith("python3"))("the host's network, as $kind", (actor) => {
  let place: NetworkPlace;
  let scene: Scene;
  const onHost = (...argv: readonly string[]): Promise<Ended> => scene.onHost(actor, argv);

  beforeAll(async () => {
    place = await NetworkPlace.open(actor, POLICIES);
    scene = await Scene.open(place, actor);
  });
  afterAll(async () => {
    await scene.services.stop();
    await place.close();
  });

  test("is said to be open, in the reply, the span and the usage", async () => {
    const [ran, host] = [
      await place.run("readlink /proc/self/ns/net"),
      await onHost("readlink", "/proc/self/ns/net"),
    ];
    expect(ran.stdout).toBe(host.stdout);
    expect(ran.isolation.net).toMatch(/^off: the host's network/);
    expect(ran.usage).toMatchObject({ egress_bytes: null, ingress_bytes: null });
    const spans = place.broker.spans().filter(({ span_id }) => span_id === ran.span_id);
    for (const span of spans) expect(span.isolation?.net).toBe(ran.isolation.net);
    expect(spans.find(({ event_type }) => event_type === "command_complete")?.usage?.egress_bytes).toBeNull();
  });

  test.each(Object.entries(OPEN))(
    "leaves every Unix socket of the host out of reach under %s; the host's programs reach each",
    async (_what, text) => {
      const other = await NetworkPlace.in(place.internet, actor, { default: text });
      try {
        const there = await Scene.open(other, actor);
        const { services } = there;
        try {
          const ran = await other.run(there.reach);
          const lines = ran.stdout.trim().split("\n");
          expect(lines).toHaveLength(22);
          expect(lines.filter((line) => line.endsWith(" reached"))).toEqual(["tcp reached"]);
          expect(services.reached).toEqual(["tcp"]);
          const told = ran.notices.map(({ message }) => message).join("\n");
          expect(told).toMatch(/The Unix socket '@substrate-test.*' was refused/);
          const host = await there.onHost(actor, ["sh", "-c", there.reach]);
          expect(host.stdout.split("\n").filter((line) => line !== "" && !line.endsWith(" reached"))).toEqual(
            [],
          );
          expect(services.reached).toHaveLength(7);
        } finally {
          await services.stop();
        }
      } finally {
        await other.broker.stop();
      }
    },
  );

  test("lets no command listen under an abstract name, and says so", async () => {
    const running = place.run("python3 abstract.py");
    const dial =
      "import socket, time; time.sleep(1); socket.socket(socket.AF_UNIX).connect('\\0substrate-test-squatter')";
    const host = await onHost("python3", "-c", dial);
    const ran = await running;
    expect(ran.stdout).toBe("1\n");
    expect(host.code).not.toBe(0);
    expect(ran.notices).toMatchObject([{ kind: "network" }]);
  });

  test("lets commands of one world reach each other by path, and not those of another world", async () => {
    expect((await place.run("python3 own.py own.sock")).stdout).toBe("reached\n");
    await place.broker.run({ cmd: "python3 own.py kept.sock more >kept.out 2>&1 &", background: "keep" });
    expect((await place.run("python3 client.py kept.sock")).stdout).toBe("reached\n");
    expect((await place.broker.run({ cmd: "python3 client.py kept.sock", agent_id: "other" })).stdout).toBe(
      "111\n",
    );
    expect((await place.run("python3 client.py stream.sock")).stdout).toBe("111\n");
  });

  test("serves the host from a development server, and reaches the host's", async () => {
    const port = 8943;
    await place.broker.run({
      cmd: `python3 -m http.server ${port} --bind 127.0.0.1 >server.out 2>&1 & until grep -q Serving server.out; do sleep 0.05; done`,
      background: "keep",
      env: { PYTHONUNBUFFERED: "1" },
    });
    const get = `import urllib.request; print(urllib.request.urlopen("http://127.0.0.1:${port}/own.py").status)`;
    expect((await onHost("python3", "-c", get)).stdout).toBe("200\n");
    expect((await place.broker.run({ argv: ["python3", "-c", get], agent_id: "other" })).stdout).toBe(
      "200\n",
    );
  });

  test("keeps its links, addresses, rules and switches, whoever asks", async () => {
    const state = async (): Promise<string> => {
      const words =
        "ip -o link; ip -o addr; ip rule; cat /proc/sys/net/ipv4/ip_forward /proc/sys/net/unix/max_dgram_qlen";
      return (await onHost("sh", "-c", words)).stdout;
    };
    const before = await state();
    const attacks = [
      "ip link set lo down",
      "ip link add dummy9 type dummy",
      "ip addr add 203.0.113.77/32 dev lo",
      "ip rule add from all table 99",
      "nft add table inet attack",
      "echo 1 >/proc/sys/net/ipv4/ip_forward",
      "echo 9 >/proc/sys/net/unix/max_dgram_qlen",
      "unshare --net true",
      "nsenter --net=/proc/1/ns/net ip link set lo down",
      `python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)'`,
      `python3 -c 'import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)'`,
      `python3 -c 'import socket; socket.socket().setsockopt(socket.SOL_SOCKET, 36, 7)'`,
      `python3 -c 'import socket; socket.socket().bind(("127.0.0.1", 81))'`,
    ];
    const cmd = attacks.map((attack) => `( ${attack} ) >/dev/null 2>&1; echo $?`).join("; ");
    const logging = await NetworkPlace.in(place.internet, actor, {
      default: OPEN["one that only logs system calls"],
    });
    try {
      for (const { broker } of [place, logging]) {
        const codes = (await broker.run(cmd)).stdout.trim().split("\n");
        expect(codes).toHaveLength(attacks.length);
        expect(attacks.filter((_attack, at) => codes[at] === "0")).toEqual([]);
      }
    } finally {
      await logging.broker.stop();
    }
    expect(await state()).toBe(before);
    expect((await place.run("grep CapEff /proc/self/status; ip -o link >/dev/null; echo $?")).stdout).toBe(
      "CapEff:\t0000000000000000\n0\n",
    );
  });

  test("is no command's where a policy isolates, or where the policy requires isolation", async () => {
    const narrowed = await place.broker.run({ cmd: scene.reach, profile: "narrow" });
    expect(narrowed.isolation.net).toBe("on");
    expect(narrowed.stdout).not.toContain("reached");
    expect(await place.broker.post({ cmd: "true", profile: "needs" })).toMatchObject({
      status: 503,
      document: { error: { code: "isolation_unavailable" } },
    });
    expect(await place.broker.post({ cmd: "true", budget: { max_egress_bytes: 10 } })).toMatchObject({
      status: 400,
      document: { error: { code: "invalid_request", message: expect.stringContaining("isolate_network") } },
    });
  });
});
