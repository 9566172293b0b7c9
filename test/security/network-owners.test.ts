import { readlinkSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, type Ran } from "../support/broker/broker.ts";
import { actorsWith } from "../support/run/needs.ts";
import { descendants, processesWith } from "../support/processes/processes.ts";
import { NetworkPlace, networkPolicy } from "../support/network/place.ts";
import type { Span } from "../../schemas/generated/types.ts";

const NAMES = ["registry.example.test", "files.example.test"] as const;

/** Gives both commands the time to be there at once. */
function dialSlowly(name: string): string {
  return `sleep 0.3; python3 dial.py ${name} 80; code=$?; sleep 0.5; exit $code`;
}

describe.each(actorsWith("python3", "nft"))("what is on record of the network, as $kind", (actor) => {
  let place: NetworkPlace;
  beforeAll(async () => {
    place = await NetworkPlace.open(actor, { default: networkPolicy([...NAMES, "broken.example.test"]) });
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

  test("is a refused name below its command, with a sentence when that fails; nobody's while two run", async () => {
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
    expect(told.length).toBeGreaterThan(0);
    for (const ran of rans) expect(linesOf(ran, "violation")).toEqual([]);
  });

  test("is why an allowed name was not reached, with a sentence when its command fails", async () => {
    const dial = "curl -sS http://broken.example.test/";
    const failed = await place.run(dial);
    expect(failed.exit).not.toBe(0);
    expect(failed.stderr).toContain(
      "substrate: The connection to broken.example.test:80 failed: 'broken.example.test' cannot be resolved on the host: ESERVFAIL\n",
    );
    expect(failed.stderr).not.toContain("net.allowed");
    expect(linesOf(failed, "violation")).toEqual([]);
    expect(linesOf(failed, "connection")).toMatchObject([{ connection: { ended: "failed" } }]);
    expect((await place.run(`${dial} 2>&1 || true`)).stderr).toBe("");
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
