import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestBroker } from "../support/broker/broker.ts";
import { change, changed, diffOf, errorIn, isolated, isolating } from "../support/held/changes.ts";
import { actorsWith } from "../support/run/needs.ts";

describe.each(actorsWith("python3"))("folders in each other without end, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: isolating() } });
  });
  afterAll(() => broker.stop());

  test("are shown, refused and discarded; what lies beside them is applied", async () => {
    const script = "import os\nfor i in range(20000):\n    os.mkdir('q'); os.chdir('q')";
    const { span_id: span, fs_diff: diff } = await isolated(
      broker,
      `echo fine > fine; python3 -c "${script}"`,
    );
    expect(diff).toMatchObject({ held: true, truncated: true });
    expect((await diffOf(broker, span)).changes.map(({ path }) => path)).toEqual(
      expect.arrayContaining(["fine", "q", "q/q"]),
    );
    const error = errorIn(await change(broker, "apply", span));
    expect(error).toMatchObject({ status: 409, code: "apply_conflict" });
    expect(error.message).toContain("too deep");
    expect(existsSync(join(broker.project, "q"))).toBe(false);
    await changed(broker, "apply", span, ["fine"]);
    expect(readFileSync(join(broker.project, "fine"), "utf8")).toBe("fine\n");
    expect((await changed(broker, "discard", span)).left).toEqual([]);
  });
});
