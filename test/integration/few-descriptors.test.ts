import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";

/** A world takes some five of them. */
const DESCRIPTORS = 128;
const AGENTS = 40;

async function until(done: () => boolean): Promise<void> {
  for (let tried = 0; tried < 400 && !done(); tried += 1) await sleep(25);
  expect(done()).toBe(true);
}

describe.each(actors())(`a broker that may have ${DESCRIPTORS} files open, as $kind`, (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    const wrap = (): readonly string[] => ["sh", "-c", `ulimit -n ${DESCRIPTORS}; exec "$0" "$@"`];
    broker = await TestBroker.start(actor, { wrap });
  });
  afterAll(() => broker.stop());

  test("refuses a world when none is left, says so, and keeps those that it has", async () => {
    const worlds = new Map<string, string>();
    let refused: { readonly status: number; readonly text: string } | undefined;
    for (let at = 0; at < AGENTS && refused === undefined; at += 1) {
      const agent = `agent-${at}`;
      const { status, document } = await broker.post({ agent_id: agent, cmd: "true" });
      if (status === 200) worlds.set(agent, (document as { readonly world_id: string }).world_id);
      else refused = { status, text: JSON.stringify(document) };
    }
    expect(worlds.size).toBeGreaterThan(5);
    expect(refused?.status, refused?.text).toBe(503);
    expect(refused?.text).toContain("EMFILE");
    expect(refused?.text).toContain("higher limits of open files");
    for (const [agent, world] of worlds)
      expect(await broker.run({ agent_id: agent, cmd: "true" })).toMatchObject({ exit: 0, world_id: world });
    await broker.operator("POST", "/v1/world/restart", { all: true, force: true });
    expect(await broker.run({ agent_id: "later", cmd: "true" })).toMatchObject({ exit: 0 });
  });

  test("keeps its own part of them from agents that open connections and leave them open", async () => {
    const sockets: Socket[] = [];
    let [closed, said] = [0, ""];
    try {
      for (let count = 0; count < 2 * DESCRIPTORS; count += 1) {
        const socket = connect(join(broker.home, "sock/agent.sock"));
        sockets.push(socket);
        socket.on("error", () => {}).on("close", () => (closed += 1));
        socket.on("data", (bytes) => (said += bytes.toString()));
        // A client that writes to a closed connection meets EPIPE before it reads the answer: every second client writes nothing.
        if (count % 2 === 0) socket.write("POST /v1/check HTTP/1.1\r\nhost: x\r\n");
      }
      await until(() => closed >= 2 * DESCRIPTORS - DESCRIPTORS / 4);
      // The broker looks after its home by a timer, which takes a descriptor too.
      await sleep(6000);
      expect((await broker.operator("GET", "/v1/health")).status).toBe(200);
      expect(said).toMatch(/^HTTP\/1\.1 503 [^]*"code":"busy"/);
      expect(sockets.length - closed).toBeGreaterThan(4);
    } finally {
      for (const socket of sockets) socket.destroy();
    }
    await until(() => closed === sockets.length);
    expect(await broker.run({ agent_id: "later", cmd: "true" })).toMatchObject({ exit: 0 });
  });
});
