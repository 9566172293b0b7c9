import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actorsWith } from "../support/run/needs.ts";
import { NetworkPlace, networkPolicy } from "../support/network/place.ts";

/** Refused at once, not hanging. */
const AT_ONCE_MS = 2000;

/** Sends a datagram to each `ADDRESS PORT` and waits for an answer: prints what came of each, and in how many ms. */
const DATAGRAMS = `
import errno, socket, sys, time
words = sys.argv[1:]
for host, port in zip(words[::2], words[1::2]):
    began = time.monotonic()
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(3)
            s.connect((host, int(port)))
            s.send(b"hello")
            s.send(b"again")
            s.recv(100)
            came = "answered"
    except TimeoutError: came = "hung"
    except OSError as e: came = errno.errorcode.get(e.errno, type(e).__name__)
    print(came, round((time.monotonic() - began) * 1000))
`;

/** Tries each way to ping, or to write packets oneself: prints the ways that let a packet go. */
const PACKETS = `
import socket
ECHO = bytes((8, 0, 0xf7, 0xff, 0, 0, 0, 0))
IP = bytes((0x45, 0, 0, 28, 0, 0, 0, 0, 64, 1, 0, 0, 0, 0, 0, 0, 203, 0, 113, 10)) + ECHO
I = socket
WAYS = [(I.AF_INET, I.SOCK_DGRAM, I.IPPROTO_ICMP, ECHO, ("203.0.113.10", 0)),
  (I.AF_INET, I.SOCK_RAW, I.IPPROTO_ICMP, ECHO, ("203.0.113.10", 0)),
  (I.AF_INET, I.SOCK_RAW, I.IPPROTO_RAW, IP, ("203.0.113.10", 0)),
  (I.AF_INET6, I.SOCK_DGRAM, I.IPPROTO_ICMPV6, bytes((128,)) + bytes(7), ("2001:db8::12", 0)),
  (I.AF_INET6, I.SOCK_RAW, I.IPPROTO_ICMPV6, bytes((128,)) + bytes(7), ("2001:db8::12", 0)),
  (I.AF_PACKET, I.SOCK_RAW, 0x0008, bytes(12) + b"\\x08\\x00" + IP, ("lo", 0x0800))]
for family, kind, protocol, packet, to in WAYS:
    try:
        with socket.socket(family, kind, protocol) as s:
            s.sendto(packet, to)
            print(family, kind, protocol)
    except OSError: pass
`;

/** Dials whatever listens in the world, as /proc says, and prints how many there were and how many answered. */
const LISTENERS = `
import socket
found = answered = 0
for file, family in (("/proc/net/tcp", socket.AF_INET), ("/proc/net/tcp6", socket.AF_INET6)):
    for line in open(file).readlines()[1:]:
        local, state = line.split()[1], line.split()[3]
        if state != "0A": continue
        words = bytes.fromhex(local.split(":")[0])
        address = b"".join(words[at:at + 4][::-1] for at in range(0, len(words), 4))
        port = int(local.split(":")[1], 16)
        if port == 53: continue
        found += 1
        with socket.socket(family, socket.SOCK_STREAM) as s:
            s.settimeout(3)
            try:
                s.connect((socket.inet_ntop(family, address), port))
                s.sendall(b"GET / HTTP/1.1\\r\\nHost: registry.example.test\\r\\n\\r\\n")
                if s.recv(1): answered += 1
            except OSError: pass
print(found, answered)
`;

describe.each(actorsWith("python3", "nft"))("addresses, as $kind", (actor) => {
  let place: NetworkPlace;
  beforeAll(async () => {
    place = await NetworkPlace.open(actor, {
      default: networkPolicy(["registry.example.test", "registry.example.test:8080"]),
    });
    place.broker.write(`${place.broker.project}/datagrams.py`, DATAGRAMS);
    place.broker.write(`${place.broker.project}/packets.py`, PACKETS);
    place.broker.write(`${place.broker.project}/listeners.py`, LISTENERS);
  });
  afterAll(() => place.close());

  test("that the policy does not allow are told with the rule and what to write, however they are dialled", async () => {
    const ways = {
      "203.0.113.20 80": "python3 dial.py",
      "203.0.113.21 8443": `node -e 'require("net").connect({ host: process.argv[1], port: +process.argv[2] }).on("error", () => {})'`,
      "2001:db8::12 443": "python3 dial.py",
    };
    const cmd = Object.entries(ways).map(([target, how]) => `${how} ${target}`);
    const ran = await place.run(`${[...cmd, ...cmd].join("; ")}; python3 dial.py 127.0.0.1 9`);
    const rule = "was refused: net.allowed (default.yaml:5) does not allow it";
    expect(ran.notices.map(({ kind, message }) => `${kind}: ${message}`).sort()).toEqual([
      `network: A connection to 203.0.113.20:80 ${rule}. "substrate policy allow net 203.0.113.20:80" adds it`,
      `network: A connection to 203.0.113.21:8443 ${rule}. "substrate policy allow net 203.0.113.21:8443" adds it`,
      `network: A connection to [2001:db8::12]:443 ${rule}, and a world has no IPv6. Use a name, or an IPv4 address`,
    ]);
    const lines = place.broker.spans().filter(({ parent_span: parent }) => parent === ran.span_id);
    expect(lines.flatMap(({ violation }) => violation ?? [])).toContainEqual({
      kind: "connection",
      subject: "203.0.113.20:80",
    });
  });

  test("of an allowed name are told by that name, on a port that no name has; and allowed ones are not told", async () => {
    const refused = await place.run("python3 dial.py registry.example.test 9999");
    expect(refused.notices.map(({ message }) => message)).toEqual([
      "A connection to registry.example.test:9999 was refused: net.allowed (default.yaml:5) does not allow it",
    ]);
    expect((await place.run("python3 dial.py registry.example.test 80")).notices).toEqual([]);
  });

  test("are told to the command that dialled, beside another, and at most sixteen of them", async () => {
    const many = Array.from({ length: 40 }, (_one, at) => `203.0.113.${100 + at} 80`).join(" ");
    const rans = await Promise.all([
      place.run(`sleep 0.3; python3 dial.py ${many}; sleep 0.3`),
      place.run("sleep 2"),
    ]);
    expect(rans.map(({ notices }) => notices.length)).toEqual([16, 0]);
  });

  async function refusedAtOnce(targets: readonly string[]): Promise<void> {
    const { dialled, seen } = await place.dial(targets);
    expect(seen.connections).toEqual([]);
    expect(dialled).toHaveLength(targets.length);
    for (const [index, { came, ms }] of dialled.entries()) {
      expect(came, targets[index]).not.toBe("connected");
      expect(ms, targets[index]).toBeLessThan(AT_ONCE_MS);
    }
  }

  test("that are dialled without a name are refused at once, an allowed name's own too; by its name it is reached", async () => {
    const addresses = [
      "203.0.113.10",
      "203.0.113.66",
      "192.0.2.1",
      "10.1.2.3",
      "8.8.8.8",
      "2001:db8::12",
      "fd00::1",
    ];
    await refusedAtOnce(
      addresses.flatMap((address) => [80, 443, 22, 8080].map((port) => `${address} ${port}`)),
    );
    const { dialled, seen } = await place.dial(["registry.example.test 80", "registry.example.test 8080"]);
    expect(dialled.map(({ came }) => came)).toEqual(["connected", "connected"]);
    expect(seen.connections.map(({ to }) => to)).toEqual([
      { address: "203.0.113.10", port: 80 },
      { address: "203.0.113.10", port: 8080 },
    ]);
  });

  test("of a name are for the ports of its rule and no others", async () => {
    await refusedAtOnce([
      "registry.example.test 9000",
      "registry.example.test 5432",
      "registry.example.test 8443",
    ]);
  });

  test("spelled in octal, in hex, as one number, short, or as an IPv4 address within an IPv6 one are addresses all the same", async () => {
    const spelled = [
      "0313.0.0161.012",
      "0xcb.0x0.0x71.0xa",
      "0xcb00710a",
      "3405803786",
      "203.28938",
      "::ffff:203.0.113.10",
      "::ffff:cb00:710a",
      "64:ff9b::cb00:710a",
      "2002:cb00:710a::1",
      "127.1",
      "0x7f.1",
      "0",
      "2130706433",
    ];
    await refusedAtOnce(spelled.map((address) => `${address} 80`));
    for (const address of ["0313.0.0161.012", "0xcb00710a", "[::ffff:203.0.113.10]", "3405803786"]) {
      const { result, seen } = await place.during(`curl -sS --max-time 5 http://${address}/`);
      expect(result.stdout, address).toBe("");
      expect(seen.connections, address).toEqual([]);
    }
    expect((await place.during("curl -sS http://registry.example.test/")).result.stdout).toBe(
      "hello from registry.example.test\n",
    );
  });

  test("get no datagram, at once; a world's own localhost does", async () => {
    const targets = [
      "203.0.113.10 443",
      "203.0.113.10 4433",
      "10.1.2.3 4433",
      "2001:db8::12 443",
      "127.0.0.1 4433",
    ];
    const { result, seen } = await place.during(`python3 datagrams.py ${targets.join(" ")}`);
    expect(seen.datagrams).toEqual([]);
    const lines = result.stdout.trim().split("\n");
    expect(lines, result.stderr).toHaveLength(targets.length);
    for (const line of lines) {
      expect(line).not.toMatch(/^(answered|hung)/);
      expect(Number(line.split(" ")[1])).toBeLessThan(AT_ONCE_MS);
    }
    const own = `python3 -c "
import socket
a = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); a.bind(('127.0.0.1', 4433))
b = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); b.sendto(b'own', ('127.0.0.1', 4433))
print(a.recv(9).decode())"`;
    expect((await place.run(own)).stdout).toBe("own\n");
    const outside = await place.internet.during(() =>
      place.internet.run(["python3", "-c", DATAGRAMS, "203.0.113.10", "443"]),
    );
    expect(outside.seen.datagrams).toHaveLength(2);
  });

  test("get no datagram, and a failed command is told why", async () => {
    const file = `${place.broker.project}/one.py`;
    place.broker.write(
      file,
      'import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.sendto(b"x", ("203.0.113.10", 53))\n',
    );
    const node = `node -e 'require("dgram").createSocket("udp4").send("x", 53, "203.0.113.10", (e) => { throw e; })'`;
    for (const cmd of ["python3 one.py", node])
      expect((await place.run(cmd)).notices.map(({ message }) => message)).toEqual([
        expect.stringMatching(/ failed: a world carries TCP connections alone and refuses ICMP and UDP\./),
      ]);
  });

  test("of a name get no datagram either", async () => {
    const { result, seen } = await place.during("python3 datagrams.py registry.example.test 443");
    expect(result.stdout, result.stderr).toMatch(/^E[A-Z]+ \d{1,3}\n$/);
    expect(seen.datagrams).toEqual([]);
  });

  test("get no ping and no packet that a command wrote itself; outside they do", async () => {
    const { result, seen } = await place.during("python3 packets.py");
    expect(result.stderr).toBe("");
    expect(result.stdout).toBe("");
    expect(seen.echoes).toBe(0);
    const outside = await place.internet.during(() => place.internet.run(["python3", "-c", PACKETS]));
    expect(outside.seen.echoes).toBeGreaterThan(0);
  });

  test("of the host's localhost are the world's own, and the host's services see nobody", async () => {
    const names = [
      "127.0.0.1",
      "::1",
      "localhost",
      "127.0.0.53",
      "127.1.2.3",
      "0.0.0.0",
      "host.internal",
      "ip6-localhost",
    ];
    await refusedAtOnce(names.flatMap((name) => [`${name} 5432`, `${name} 80`]));
    const own = `python3 -m http.server 8123 --bind 127.0.0.1 >/dev/null 2>&1 & server=$!
for i in $(seq 100); do curl -s -o /dev/null http://127.0.0.1:8123/ && break; sleep 0.05; done
curl -s -o /dev/null -w '%{http_code}' http://localhost:8123/; kill $server`;
    expect((await place.run(own)).stdout).toBe("200");
  });

  test("of the host's localhost are reached where the policy names host.internal, at that port and no other", async () => {
    const other = await NetworkPlace.in(place.internet, actor, {
      default: networkPolicy(["host.internal:5432"]),
    });
    try {
      const ways = ["host.internal 5432", "host.internal 80", "127.0.0.1 5432", "localhost 5432", "::1 5432"];
      const { dialled, seen } = await other.dial(ways);
      expect(dialled.map(({ came }) => came === "connected")).toEqual([true, false, false, false, false]);
      expect(seen.connections.map(({ to }) => to)).toEqual([{ address: "127.0.0.1", port: 5432 }]);
      expect(seen.questions).toEqual([]);
    } finally {
      await other.broker.stop();
    }
  });

  test("of what listens in the world for the world's own network lead nowhere when they are dialled themselves", async () => {
    const { result, seen } = await place.during("python3 listeners.py");
    expect(result.stdout, result.stderr).toMatch(/^\d+ 0\n$/);
    expect(seen.connections).toEqual([]);
    expect((await place.dial(["registry.example.test 80"])).dialled[0]?.came).toBe("connected");
  });

  test("of the synthetic range that stand for no name lead nowhere", async () => {
    const strangers = ["198.18.0.0", "198.18.0.1", "198.18.77.77", "198.19.255.254", "198.19.255.255"];
    await refusedAtOnce(strangers.flatMap((address) => [`${address} 5432`, `${address} 9000`]));
    const { seen } = await place.dial(strangers.map((address) => `${address} 443`));
    expect(seen.connections.filter(({ to }) => to.address !== "203.0.113.10")).toEqual([]);
  });
});
