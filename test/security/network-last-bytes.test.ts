import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Span } from "../../schemas/generated/types.ts";
import { eventually, type Ran } from "../support/broker/broker.ts";
import { actorsWith } from "../support/run/needs.ts";
import { NetworkPlace, networkPolicy } from "../support/network/place.ts";

const SINK = "files.example.test";
const WEB = "registry.example.test";
const SIZE = 100;

/**
 * `last.py HOW COUNT` sends `SIZE` bytes over each of so many connections to the sink and ends before anybody looks at them. HOW:
 * `close` and `reset` say how each ends; `port` dials two servers from one port, of which the kernel has to change one, and `wait`
 * dials two other servers. `port` and `wait` end after the servers have the bytes.
 */
const LAST = `
import socket, struct, sys
how, count = sys.argv[1], int(sys.argv[2])
address = socket.gethostbyname("${SINK}")
kept = []
for at in range(count):
    s = socket.socket()
    s.settimeout(5)
    if how == "reset": s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    if how == "port":
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind((address, 5555))
    s.connect((address, 22 if how == "port" and at == 1 else 9000))
    s.sendall(b"x" * ${SIZE})
    if how in ("close", "reset"): s.close()
    else: kept.append(s)
for s in kept:
    s.shutdown(socket.SHUT_WR)
    while s.recv(1000): pass
`;

/** Asks for names that no list allows, and ends before anybody has read the questions. */
const NAMES = `
import socket, struct, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setblocking(False)
s.connect(("127.0.0.53", 53))
for at in range(int(sys.argv[1])):
    name = b"".join(bytes([len(label)]) + label for label in (b"n%d" % at, b"evil", b"test")) + b"\\0"
    try: s.send(struct.pack("!6H", at, 0x0100, 1, 0, 0, 0) + name + struct.pack("!2H", 1, 1))
    except OSError: pass
`;

const isLineOf = (name: string) => (span: Span) => span.connection?.host === name;

describe.each(actorsWith("python3", "nft"))("the last bytes of a command, as $kind", (actor) => {
  let place: NetworkPlace;
  beforeAll(async () => {
    place = await NetworkPlace.open(actor, {
      default: networkPolicy([`${SINK}:9000`, `${SINK}:22`, WEB]),
    });
    place.broker.write(join(place.broker.project, "last.py"), LAST);
    place.broker.write(join(place.broker.project, "names.py"), NAMES);
  });
  afterAll(() => place.close());

  const lines = (name: string): readonly Span[] => place.broker.spans().filter(isLineOf(name));
  const scopesOf = ({ scopes_used: scopes }: Ran): readonly string[] =>
    scopes.filter((scope) => scope.startsWith("net:"));

  test.each([
    { how: "close", count: 1 },
    { how: "close", count: 5 },
    { how: "reset", count: 5 },
    { how: "close", count: 40 },
  ])(
    "over $count connections ('$how') are not the next command's, where a command ends before anybody accepts them",
    async ({ how, count }) => {
      const before = { sink: lines(SINK).length, web: lines(WEB).length };
      const { result, seen } = await place.internet.during(async () => {
        const ran = await place.broker.run(`python3 last.py ${how} ${count}`);
        return { ran, next: await place.broker.run(`python3 dial.py ${WEB} 80; sleep 1`) };
      });
      const { ran, next } = result;
      expect(next.stdout).toMatch(/^connected /);
      expect(scopesOf(next)).toEqual([`net:${WEB}:80`]);
      expect(await eventually(() => lines(SINK).length === before.sink + count, 30_000)).toBe(true);
      const [own] = lines(WEB).slice(before.web);
      expect(own).toMatchObject({ parent_span: next.span_id });
      // What nobody can tell is null.
      expect([own?.usage?.egress_bytes, null]).toContain(next.usage.egress_bytes);
      for (const line of lines(SINK).slice(before.sink))
        expect([ran.span_id, null]).toContain(line.parent_span);
      if (how === "close") expect([count * SIZE, null]).toContain(ran.usage.egress_bytes);
      expect(seen.connections.some(({ to }) => to.port === 9000) || how === "reset").toBe(true);
    },
  );

  test.each([1, 600])(
    "%d names are not refused to the next command, which is told of its own",
    async (count) => {
      const ran = await place.broker.run(`python3 names.py ${count}`);
      const asked = `asked-${count}`;
      const running = place.broker.run(
        `until [ -e ${asked} ]; do sleep 0.05; done; getent hosts own.evil.test`,
      );
      let lineCount = 0;
      const allRead = async (): Promise<boolean> => {
        const before = lineCount;
        await sleep(500);
        lineCount = place.broker.spans().filter(({ event_type: type }) => type === "violation").length;
        return lineCount === before;
      };
      expect(await eventually(allRead, 20_000)).toBe(true);
      place.broker.write(join(place.broker.project, asked), "");
      const next = await running;
      expect(next.stderr).toContain("The name 'own.evil.test' was not looked up");
      const refused = ({ span_id: id }: Ran): readonly (string | undefined)[] =>
        place.broker
          .spans()
          .filter((span) => span.event_type === "violation" && span.parent_span === id)
          .map(({ violation }) => violation?.subject);
      expect(refused(next)).toEqual(["own.evil.test"]);
      expect(refused(ran)).toContain("n0.evil.test");
      expect(next.notices).toHaveLength(1);
    },
  );

  test.each(["close", "port"])(
    "are in no span as none where nobody can see whose they are ('%s') beside another command",
    async (how) => {
      const [ran, other] = await Promise.all([
        place.broker.run(`sleep 0.3; python3 last.py ${how} 2; sleep 0.3`),
        place.broker.run("sleep 2"),
      ]);
      expect(ran).toMatchObject({ exit: 0, stderr: "" });
      expect([2 * SIZE, null]).toContain(ran.usage.egress_bytes);
      expect(scopesOf(other)).toEqual([]);
      expect([0, null]).toContain(other.usage.egress_bytes);
    },
  );

  test("are told to the byte where a command waits for its answer, and where it runs alone", async () => {
    for (const cmd of ["python3 last.py wait 2", "python3 last.py port 2"]) {
      const ran = await place.broker.run(cmd);
      expect(ran).toMatchObject({ exit: 0, usage: { egress_bytes: 2 * SIZE } });
    }
    const ran = await place.broker.run(`curl -sS -o /dev/null http://${WEB}/`);
    expect(await eventually(() => lines(WEB).some((line) => line.parent_span === ran.span_id), 5000)).toBe(
      true,
    );
    const line = lines(WEB).find(({ parent_span: parent }) => parent === ran.span_id);
    expect(ran.usage.egress_bytes).toBe(line?.usage?.egress_bytes);
  });
});
