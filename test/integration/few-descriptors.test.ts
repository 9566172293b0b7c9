import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";

/** A world takes some five of them. */
const DESCRIPTORS = 128;
const AGENTS = 40;

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
});
