import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { changed, diffOf, fill, isolated, isolating, treeOf } from "../support/held/changes.ts";
import { skippedTest } from "../support/run/skips.ts";

const WITHOUT = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"];

const ROOT = actors().filter(({ uid }) => uid === 0);
if (ROOT.length === 0)
  skippedTest("isolated commands of a root that may not mount", "the suite is not run by root");

describe.each(ROOT)("root of a container, which may not mount", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: isolating() }, wrap: () => WITHOUT });
  });
  afterAll(() => broker.stop());

  test("is shown what an isolated command changed, applies it, and takes it back", async () => {
    fill(broker, { a: "1\n", "d/x": "1\n", "e/y": "1\n" });
    const before = treeOf(broker.project);
    const { span_id: span, fs_diff: diff } = await isolated(
      broker,
      "echo 2 > a; rm d/x; rm -r e; mkdir e; echo n > e/new",
    );
    expect(diff).toMatchObject({ mods: ["a"], deletes: ["d/x", "e/y"], writes: ["e/new"] });
    const rows = (await diffOf(broker, span)).changes.map(({ kind, path }) => `${kind} ${path}`);
    expect(rows).toEqual(["mod a", "delete d/x", "write e/new", "delete e/y"]);
    expect((await changed(broker, "apply", span)).left).toEqual([]);
    expect(Object.keys(treeOf(broker.project))).toEqual(["a", "d", "e", "e/new"]);
    await changed(broker, "undo", span);
    expect(treeOf(broker.project)).toEqual(before);
  });
});
