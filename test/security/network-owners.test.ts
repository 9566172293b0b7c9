import { readlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, type Ran } from "../support/broker/broker.ts";
import { actorsWith } from "../support/run/needs.ts";
import { descendants, processesWith } from "../support/processes/processes.ts";
import { NetworkPlace, networkPolicy } from "../support/network/place.ts";
import type { Span } from "../../schemas/generated/types.ts";

const NAMES = ["registry.example.test", "files.example.test"] as const;

/** Asks by sendto, as musl's resolver does; with a second word it does not wait for the answer. */
const UNCONNECTED = `
import socket, struct, sys
labels = b"".join(bytes([len(label)]) + label for label in sys.argv[1].encode().split(b"."))
query = struct.pack("!6H", 1, 0x0100, 1, 0, 0, 0) + labels + struct.pack("!B2H", 0, 1, 1)
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
one.settimeout(3)
one.sendto(query, ("127.0.0.53", 53))
if len(sys.argv) == 2: one.recv(512)
`;

/** Gives both commands the time to be there at once. */
function dialSlowly(name: string): string {
  return `sleep 0.3; python3 dial.py ${name} 80; code=$?; sleep 0.5; exit $code`;
}

describe.each(actorsWith("python3", "nft"))("what is on record of the network, as $kind", (actor) => {
  let place: NetworkPlace;
  beforeAll(async () => {
    place = await NetworkPlace.open(actor, { default: networkPolicy([...NAMES, "broken.example.test"]) });
    place.broker.write(join(place.broker.project, "unconnected.py"), UNCONNECTED);
  });
  afterAll(() => place.close());

  const linesOf = (ran: Ran, type: Span["event_type"]): readonly Span[] =>
    place.broker.spans().filter((span) => span.event_type === type && span.parent_span === ran.span_id);

  test("is each connection below the command that made it, while two run in one world", async () => {
    const rans = await Promise.all(NAMES.map((name) => place.run(dialSlowly(name))));
    expect(new Set(rans.map(({ world_id: world }) => world)).size).toBe(1);
    for (const [index, ran] of rans.entries()) {
      const scope = `net:${NAMES[index]}:80`;
      expect(ran.scopes_used, ran.stdout).toEqual([scope]);
      expect(await eventually(() => linesOf(ran, "connection").length === 1, 5000)).toBe(true);
      const [line] = linesOf(ran, "connection");
      expect(line).toMatchObject({
        scopes_used: [scope],
        connection: { program: "python3" },
      });
      expect(ran.usage.egress_bytes).toBe(line?.usage?.egress_bytes);
      expect(ran.usage.ingress_bytes).toBe(line?.usage?.ingress_bytes);
    }
  });

  test("is a refused name below its command, with a sentence when that fails, also while two run", async () => {
    const alone = await place.run("getent hosts alone.evil.test");
    expect(alone.stderr).toContain("substrate: The name 'alone.evil.test' was not looked up");
    expect(linesOf(alone, "violation").map(({ violation }) => violation)).toEqual([
      { kind: "name", subject: "alone.evil.test" },
    ]);
    const fine = await place.run("getent hosts fine.evil.test || true");
    expect(fine.stderr).toBe("");
    expect(linesOf(fine, "violation")).toHaveLength(1);
    const asking = "sleep 0.3; getent hosts shared.evil.test; sleep 0.3; false";
    const rans = await Promise.all([place.run(asking), place.run("sleep 1")]);
    const told = place.broker.spans().filter(({ violation }) => violation?.subject === "shared.evil.test");
    expect(told).toHaveLength(1);
    expect(rans.map((ran) => linesOf(ran, "violation").length)).toEqual([1, 0]);
    expect(rans.map((ran) => ran.notices.length)).toEqual([1, 0]);
  });

  test.each([
    ["getent", "getent hosts NAME"],
    ["a connected socket", "python3 ask.py udp 127.0.0.53 NAME A"],
    ["an unconnected socket", "python3 unconnected.py NAME"],
    ["TCP", "python3 ask.py tcp 127.0.0.53 NAME A"],
  ])(
    "tells the next command of a name that is refused to %s, beside a kept process that asks too",
    async (how, ask) => {
      const name = (whose: string): string => `${whose}-${how.replaceAll(" ", "-").toLowerCase()}.evil.test`;
      const of = (whose: string): string => ask.replace("NAME", name(whose));
      await place.broker.run({
        cmd: `while sleep 0.1; do ${of("kept")} >asked 2>&1; done &`,
        background: "keep",
      });
      try {
        const next = await place.run(`sleep 0.5; ${of("next")}; sleep 0.5`);
        expect(next.notices.map(({ kind, message }) => `${kind}: ${message}`)).toEqual([
          expect.stringMatching(`^network: The name '${name("next")}' was not looked up`),
        ]);
        expect((await place.run("sleep 0.5")).notices).toEqual([]);
      } finally {
        await place.broker.operator("POST", "/v1/world/restart", { all: true, force: true });
      }
    },
  );

  test("blames nobody for a name whose asker is gone", async () => {
    const rans = await Promise.all([
      place.run(
        "sleep 0.3; for _ in 1 2 3 4 5; do python3 unconnected.py gone.evil.test at-once; done; sleep 0.3",
      ),
      place.run("sleep 1"),
    ]);
    expect(rans[1]?.notices).toEqual([]);
    const told = (): readonly Span[] =>
      place.broker.spans().filter(({ violation }) => violation?.subject === "gone.evil.test");
    expect(await eventually(() => told().length > 0, 5000)).toBe(true);
    for (const span of told()) expect([null, rans[0]?.span_id]).toContain(span.parent_span);
  });

  test("is why an allowed name was not reached, with a sentence when its command fails", async () => {
    const dial = "curl -sS http://broken.example.test/";
    const failed = await place.run(dial);
    expect(failed.exit).not.toBe(0);
    expect(failed.stderr).toContain(
      "substrate: 'broken.example.test' cannot be resolved on the host: ESERVFAIL\n",
    );
    expect(failed.stderr).not.toContain("net.allowed");
    expect(linesOf(failed, "violation")).toEqual([]);
    expect(linesOf(failed, "connection")).toEqual([]);
    const why = "'broken.example.test' cannot be resolved on the host";
    const passed = await place.run(`${dial} 2>&1 | cat`);
    expect([passed.exit, passed.stderr]).toEqual([0, ""]);
    expect(passed.notices).toMatchObject([{ kind: "network", message: expect.stringContaining(why) }]);
    place.broker.write(join(place.broker.project, "quiet"), `${dial} > /dev/null 2>&1`);
    expect((await place.run("sh quiet; echo on")).notices).toEqual([]);
  });

  test("ends with a world whose network is killed, and the next command has a new one", async () => {
    const first = await place.run("readlink /proc/self/ns/net");
    // Another one waits for the next world, and stays.
    const helpers = processesWith("substrate-init\0network\0").filter(
      (pid) =>
        descendants(place.broker.process.pid ?? 0).includes(pid) &&
        readlinkSync(`/proc/${pid}/ns/net`) === first.stdout.trim(),
    );
    expect(helpers).toHaveLength(1);
    const running = place.run("sleep 20");
    await eventually(() => processesWith("sleep\u000020").length > 0, 2000);
    for (const pid of helpers) process.kill(pid, "SIGKILL");
    const lost = await running;
    expect(lost).toMatchObject({
      exit: 137,
      stderr: expect.stringContaining("its network ended with SIGKILL"),
    });
    expect(lost.duration_ms).toBeLessThan(10_000);
    const next = await place.dial([`${NAMES[0]} 80`]);
    expect(next.dialled).toMatchObject([{ came: "connected" }]);
    expect((await place.run("true")).world_id).not.toBe(first.world_id);
  });
});
