import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { put, replayed, SAME } from "../support/broker/replays.ts";
import { skip } from "../support/run/skips.ts";
import { GOLDEN_SPANS, POLICY } from "./golden-spans.ts";

describe.each(actors())("golden spans, as $kind", (actor) => {
  let broker: TestBroker;
  beforeEach(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
  });
  afterEach(() => broker.stop());

  test.each(GOLDEN_SPANS)(
    "$name: its replay does the same, and an edited input is noticed",
    async (golden) => {
      if (spawnSync("which", [golden.needs]).status !== 0)
        skip(`replaying ${golden.name}`, `no ${golden.needs} here`);
      for (const [path, content] of Object.entries(golden.files()))
        put(broker, join(broker.project, path), content);
      const ran = await broker.run({ cmd: golden.cmd, timeout_ms: 60_000 });
      expect(ran, ran.stderr).toMatchObject({ exit: golden.exit });

      const same = await replayed(broker, ran.span_id);
      const { truncated, held, tree_hash: hash } = (await broker.span(ran.span_id)).fs_diff ?? {};
      const measured = truncated === false;
      expect(same).toMatchObject({ matches: { ...SAME, fs_diff: measured ? true : null }, drift: [] });
      if (held === true) expect(hash).not.toBeNull();
      // And a replay is a span like any other.
      expect(await replayed(broker, same.replay_span_id)).toMatchObject({ matches: SAME, drift: [] });

      const { path, content } = golden.edit();
      put(broker, join(broker.project, path), content);
      const other = await replayed(broker, ran.span_id);
      expect(other.matches).toMatchObject({ [golden.differs]: false });
      expect(other.drift).toEqual([
        expect.objectContaining({ what: "files", now: expect.stringContaining(path) }),
      ]);
      const { code, stdout } = await broker.cli(["replay", ran.span_id]);
      expect([code, stdout]).toEqual([1, expect.stringContaining(path)]);
    },
  );
});
