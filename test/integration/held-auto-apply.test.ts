import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ChangesReply, SpansReply } from "../../schemas/generated/types.ts";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { changed, diffOf, isolated, isolating, treeOf } from "../support/held/changes.ts";

const POLICY = isolating('changes: { apply: agent, auto_apply: ["$PROJECT/node_modules/**"] }');

describe.each(actors())("changes that apply by themselves, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
  });
  afterAll(() => broker.stop());

  const INSTALL =
    "mkdir -p node_modules/x node_modules/.bin; echo 1 > node_modules/x/package.json; ln -sf ../x node_modules/.bin/x";

  test("are in the project when the reply comes, with what is autorun inside; a span says that the policy did it", async () => {
    const { fs_diff: diff, hint, span_id: span } = await isolated(broker, INSTALL);
    expect(diff).toMatchObject({
      held: false,
      autorun: expect.arrayContaining(["node_modules/x/package.json"]) as unknown,
    });
    expect(hint).toContain("applied to the project by changes.auto_apply");
    expect(readFileSync(join(broker.project, "node_modules/x/package.json"), "utf8")).toBe("1\n");
    expect((await broker.run("cat node_modules/x/package.json")).stdout).toBe("1\n");
    const child = broker
      .spans()
      .findLast((line) => line.parent_span === span && line.held_changes !== undefined);
    expect(child).toMatchObject({
      outcome: "ended",
      held_changes: { action: "apply", by: "policy", left: 0 },
    });
  });

  test("can be taken back, also by a later broker", async () => {
    const { span_id: span } = await isolated(
      broker,
      "echo 2 > node_modules/x/package.json; echo y > node_modules/y",
    );
    expect(readFileSync(join(broker.project, "node_modules/x/package.json"), "utf8")).toBe("2\n");
    await broker.kill("SIGKILL");
    broker = await broker.again();
    await changed(broker, "undo", span);
    expect(readFileSync(join(broker.project, "node_modules/x/package.json"), "utf8")).toBe("1\n");
    expect(existsSync(join(broker.project, "node_modules/y"))).toBe(false);
  });

  test("never bring a git folder of another name, nor what leads git there; files that only have git's names come along", async () => {
    const led = await isolated(
      broker,
      "git init -q --bare node_modules/gd; mkdir -p node_modules/m; echo 'gitdir: ../gd' > node_modules/m/.git",
    );
    expect(led.fs_diff?.held).toBe(true);
    expect(led.hint).toContain(
      "changes.auto_apply: Nothing was applied: only the operator can apply files that tools run later",
    );
    for (const path of ["gd", "m/.git"])
      expect(existsSync(join(broker.project, "node_modules", path))).toBe(false);
    const twin = await isolated(
      broker,
      "mkdir -p node_modules/h/hooks; echo x > node_modules/h/config; echo x > node_modules/h/hooks/a",
    );
    expect(twin.fs_diff?.held).toBe(false);
    expect(existsSync(join(broker.project, "node_modules/h/hooks/a"))).toBe(true);
  });

  test("leave a deletion held where the file was moved out of the policy's folder", async () => {
    broker.write(join(broker.project, "node_modules/moved/a"), "the only copy\n");
    broker.write(join(broker.project, "node_modules/removed"), "of no use\n");
    const { span_id: span } = await isolated(
      broker,
      "mv node_modules/moved vendored; rm node_modules/removed; echo 5 > node_modules/five",
    );
    expect(existsSync(join(broker.project, "node_modules/removed"))).toBe(false);
    expect(existsSync(join(broker.project, "node_modules/five"))).toBe(true);
    expect(existsSync(join(broker.project, "node_modules/moved/a"))).toBe(true);
    await changed(broker, "discard", span);
    expect(readFileSync(join(broker.project, "node_modules/moved/a"), "utf8")).toBe("the only copy\n");
  });

  test("leave what lies elsewhere held, and the reply says how much of both", async () => {
    const {
      fs_diff: diff,
      hint,
      span_id: span,
    } = await isolated(broker, "echo z > node_modules/z; echo n > notes.txt");
    expect(diff?.held).toBe(true);
    expect(hint).toContain("1 change was applied to the project by changes.auto_apply");
    expect(hint).toContain("The other changes are held");
    expect(hint).toContain(`'substrate apply ${span}' (POST /v1/apply/${span})`);
    expect([
      existsSync(join(broker.project, "node_modules/z")),
      existsSync(join(broker.project, "notes.txt")),
    ]).toEqual([true, false]);
    expect((await diffOf(broker, span)).changes.map(({ path }) => path)).toEqual(["notes.txt"]);
    const applied = await broker.call("POST", `/v1/apply/${span}`, {});
    expect((applied.document as ChangesReply).done).toEqual(["notes.txt"]);
  });

  test.each([
    [
      "a file that tools run by themselves changed beside them",
      "echo q > node_modules/q; echo all: > Makefile",
    ],
    ["the command was ended by its time", "echo q > node_modules/q; sleep 60"],
    ["a link takes the folder's place", "mv node_modules away; ln -s away node_modules"],
    ["the folder itself goes", "rm -r node_modules"],
  ])("are none when %s: all is held", async (_what, cmd) => {
    const before = treeOf(broker.project);
    const { fs_diff: diff, span_id: span } = await isolated(broker, cmd, { timeout_ms: 1500 });
    expect(diff?.held).toBe(true);
    expect(treeOf(broker.project)).toEqual(before);
    await changed(broker, "discard", span);
  });

  test("stay held when the project changed under the command, and the reply says which path", async () => {
    const path = join(broker.project, "node_modules/z");
    const run = isolated(broker, "sleep 1.5; echo theirs > node_modules/z");
    await new Promise((resolve) => setTimeout(resolve, 700));
    writeFileSync(path, "mine\n");
    const { fs_diff: diff, hint } = await run;
    expect(diff?.held).toBe(true);
    expect(hint).toContain("node_modules/z");
    expect(readFileSync(path, "utf8")).toBe("mine\n");
  });

  test("leave spans that the trace lists like every other", async () => {
    const { spans } = (await broker.operator("GET", "/v1/spans?limit=100")).document as SpansReply;
    expect(spans.filter(({ held_changes: event }) => event?.by === "policy").length).toBeGreaterThan(1);
    expect((await broker.cli(["trace", "verify"])).code).toBe(0);
  });
});
