import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import {
  change,
  changed,
  copyOf,
  diffOf,
  errorIn,
  fill,
  isolated,
  isolating,
  treeOf,
} from "../support/held/changes.ts";

describe.each(actors())("held changes, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: isolating() } });
  });
  afterAll(() => broker.stop());

  beforeEach(() => {
    spawnSync("sh", ["-c", 'rm -rf "$0"/* "$0"/.[!.]*', broker.project]);
    fill(broker, { "kept.txt": "one\ntwo\nthree\n", "gone.txt": "bye\n", "old/a": "a\n", "old/b": "b\n" });
  });

  const WORK =
    "sed -i s/two/TWO/ kept.txt; rm gone.txt; rm -r old; mkdir -p new/deep; echo x > new/deep/f; ln -s kept.txt link; printf '#!/bin/sh\\n' > run; chmod 755 run";

  test("are shown as a list and a patch, and the project stays as it was", async () => {
    const before = treeOf(broker.project);
    const { span_id: span, fs_diff: diff } = await isolated(broker, WORK);
    expect(diff?.held).toBe(true);
    const { changes, patch, truncated } = await diffOf(broker, span);
    const rows = Object.fromEntries(
      changes.map(({ path, kind, added, removed }) => [path, [kind, added, removed]]),
    );
    expect(rows).toEqual({
      "gone.txt": ["delete", 0, 1],
      "kept.txt": ["mod", 1, 1],
      link: ["link", 1, 0],
      new: ["dir", null, null],
      "new/deep": ["dir", null, null],
      "new/deep/f": ["write", 1, 0],
      old: ["delete", 0, 2],
      run: ["write", 1, 0],
    });
    expect(truncated).toBe(false);
    expect(patch).toContain("-two\n+TWO\n");
    expect(treeOf(broker.project)).toEqual(before);
  });

  test("of which a patch has no form are named beside it: another mode of a folder, a pipe", async () => {
    const { span_id: span } = await isolated(broker, "chmod 777 old; mkfifo pipe; echo x > new");
    const { changes, patch, truncated, summary } = await diffOf(broker, span);
    expect(changes.map(({ path }) => path)).toEqual(["new", "old", "pipe"]);
    expect(patch).not.toMatch(/old|pipe/);
    expect(summary).toContain("the mode of folders changed: old (755 to 777)");
    expect(summary).toContain("1 file is a special file (such as a pipe) or unreadable, and not shown: pipe");
    expect(truncated).toBe(true);
  });

  test("are in the patch what apply makes of them: git's own apply makes the same tree", async () => {
    const { span_id: span } = await isolated(broker, WORK);
    const copy = copyOf(broker.project, join(broker.folder, "copy"));
    const { patch } = await diffOf(broker, span);
    const applied = spawnSync("git", ["apply", "-"], {
      cwd: copy,
      input: patch,
      env: { ...process.env, GIT_CEILING_DIRECTORIES: broker.folder },
    });
    expect(applied.stderr.toString()).toBe("");
    await changed(broker, "apply", span);
    const modeless = (tree: Readonly<Record<string, string>>): object =>
      Object.fromEntries(Object.entries(tree).filter(([, what]) => !what.startsWith("folder")));
    expect(modeless(treeOf(copy))).toEqual(modeless(treeOf(broker.project)));
    rmSync(copy, { recursive: true });
  });

  test("are applied with a line in the trace before and one after, which say what it was", async () => {
    const { span_id: span } = await isolated(broker, WORK);
    const { done, left, change_span_id: id } = await changed(broker, "apply", span);
    expect(left).toEqual([]);
    expect(done).toContain("new/deep/f");
    expect(readFileSync(join(broker.project, "kept.txt"), "utf8")).toBe("one\nTWO\nthree\n");
    expect(existsSync(join(broker.project, "gone.txt"))).toBe(false);
    const lines = broker.spans().filter(({ span_id }) => span_id === id);
    expect(lines).toMatchObject([
      {
        event_type: "world",
        parent_span: span,
        outcome: null,
        held_changes: { action: "apply", by: "operator", done: null },
      },
      {
        event_type: "world",
        parent_span: span,
        outcome: "ended",
        held_changes: { done: done.length, left: 0 },
      },
    ]);
    expect(lines[1]?.fs_diff?.mods).toEqual(["kept.txt"]);
  });

  test("are taken back by undo: content, modes, links and folders are what they were", async () => {
    const before = treeOf(broker.project);
    const { span_id: span } = await isolated(broker, WORK);
    await changed(broker, "apply", span);
    expect(treeOf(broker.project)).not.toEqual(before);
    await changed(broker, "undo", span);
    expect(treeOf(broker.project)).toEqual(before);
  });

  test("of which a folder stands for a file, or a file for a folder, are applied and taken back", async () => {
    const before = treeOf(broker.project);
    const { span_id: span } = await isolated(
      broker,
      "rm kept.txt; mkdir kept.txt; echo in > kept.txt/in; rm -r old; echo file > old",
    );
    await changed(broker, "apply", span);
    expect(readFileSync(join(broker.project, "kept.txt/in"), "utf8")).toBe("in\n");
    expect(readFileSync(join(broker.project, "old"), "utf8")).toBe("file\n");
    await changed(broker, "undo", span);
    expect(treeOf(broker.project)).toEqual(before);
  });

  test("that are not in the project are not taken back, twice neither, and nobody is told that they were", async () => {
    const { span_id: span } = await isolated(broker, WORK);
    const early = errorIn(await change(broker, "undo", span));
    expect(early).toMatchObject({ status: 404, code: "not_found" });
    expect(early.message).toMatch(/no change of span '[^']*' is in the project$/);
    await changed(broker, "apply", span);
    await changed(broker, "undo", span);
    const error = errorIn(await change(broker, "undo", span));
    expect(error).toMatchObject({ status: 404, code: "not_found" });
    expect(error.message).toContain("8 taken back at");
    expect(await broker.span(error.span_id ?? "none")).toMatchObject({
      outcome: "refused",
      code: "not_found",
    });
  });

  test("are not taken back when something touched them since: nothing is, and the path is named", async () => {
    const { span_id: span } = await isolated(broker, WORK);
    await changed(broker, "apply", span);
    writeFileSync(join(broker.project, "new/deep/f"), "mine\n");
    const before = treeOf(broker.project);
    const error = errorIn(await change(broker, "undo", span));
    expect(error).toMatchObject({ status: 409, code: "apply_conflict" });
    // It may name a folder that came as one.
    expect(error.conflicts?.every(({ path }) => "new/deep/f".startsWith(path))).toBe(true);
    expect(treeOf(broker.project)).toEqual(before);
  });

  test("are applied and discarded by path, and what is left stays held", async () => {
    const { span_id: span } = await isolated(broker, WORK);
    expect(await changed(broker, "apply", span, ["new"])).toMatchObject({
      done: expect.arrayContaining(["new/deep/f"]) as unknown,
      left: expect.arrayContaining(["kept.txt", "run"]) as unknown,
    });
    await changed(broker, "discard", span, ["kept.txt", "gone.txt"]);
    const { changes } = await diffOf(broker, span);
    expect(changes.map(({ path }) => path)).toEqual(["link", "old", "run"]);
    await changed(broker, "apply", span);
    expect(readFileSync(join(broker.project, "kept.txt"), "utf8")).toBe("one\ntwo\nthree\n");
    expect(existsSync(join(broker.project, "old"))).toBe(false);
    const error = errorIn(await change(broker, "apply", span));
    expect(error).toMatchObject({ status: 404, code: "not_found" });
    expect(error.message).toContain("applied");
  });

  test("that are discarded leave nothing to apply, and the project as it was", async () => {
    const before = treeOf(broker.project);
    const { span_id: span } = await isolated(broker, WORK);
    expect((await changed(broker, "discard", span)).left).toEqual([]);
    expect(errorIn(await change(broker, "apply", span))).toMatchObject({ status: 404 });
    expect(treeOf(broker.project)).toEqual(before);
  });

  test("conflict with what changed in the project since: nothing is applied, and the rest can be by path", async () => {
    const { span_id: span } = await isolated(broker, WORK);
    writeFileSync(join(broker.project, "kept.txt"), "mine\n");
    const before = treeOf(broker.project);
    const error = errorIn(await change(broker, "apply", span));
    expect(error).toMatchObject({ status: 409, code: "apply_conflict", conflicts: [{ path: "kept.txt" }] });
    expect(treeOf(broker.project)).toEqual(before);
    await changed(broker, "apply", span, ["run"]);
    expect(existsSync(join(broker.project, "run"))).toBe(true);
  });

  test("conflict with an edit of the same length whose time was set back", async () => {
    const path = join(broker.project, "kept.txt");
    // A whole second: a time that Node reads and sets again may differ by a nanosecond.
    utimesSync(path, 1_000_000_000, 1_000_000_000);
    const { span_id: span } = await isolated(broker, WORK);
    writeFileSync(path, "ONE\ntwo\nthree\n");
    utimesSync(path, 1_000_000_000, 1_000_000_000);
    expect(statSync(path)).toMatchObject({ size: 14, mtimeMs: 1_000_000_000_000 });
    const error = errorIn(await change(broker, "apply", span));
    expect(error).toMatchObject({ status: 409, code: "apply_conflict", conflicts: [{ path: "kept.txt" }] });
    expect(readFileSync(path, "utf8")).toBe("ONE\ntwo\nthree\n");
  });

  test("with names that are no UTF-8, or hold line breaks, are found again by the name that the diff gives", async () => {
    const { span_id: span } = await isolated(
      broker,
      "printf 1 > \"$(printf 'a\\377b')\"; printf 2 > \"$(printf 'c\\nd')\"",
    );
    const { changes } = await diffOf(broker, span);
    expect(changes.map(({ path }) => path)).toEqual(['"a\\377b"', "c\nd"]);
    await changed(broker, "apply", span, ['"a\\377b"', '"c\\nd"']);
    expect(treeOf(broker.project)).toMatchObject({ "a\xffb": "file 644 1", "c\nd": "file 644 2" });
  });

  test("are named in the reply's hint, with the calls that decide about them", async () => {
    const reply = await isolated(broker, "echo x > f");
    expect(reply.hint).toContain(`substrate apply ${reply.span_id}`);
    expect(reply.hint).toContain("no later command sees them");
    const { list, source } = reply.decision.rule ?? {};
    expect(reply.hint).toContain(` The command ran isolated by ${list} (${source}): `);
    expect((await broker.run("cat f; true")).stdout).toBe("");
    expect(await broker.run("true")).toMatchObject({ hint: null });
    expect(await isolated(broker, "true")).toMatchObject({ hint: null });
  });

  test("survive the broker, killed as it may be, and its lost index; the trace verifies", async () => {
    const { span_id: span } = await isolated(broker, WORK);
    await changed(broker, "apply", span, ["run"]);
    await broker.kill("SIGKILL");
    rmSync(join(broker.home, "db"), { recursive: true });
    broker = await broker.again();
    const { changes } = await diffOf(broker, span, "?path=kept.txt");
    expect(changes).toMatchObject([{ path: "kept.txt", added: 1 }]);
    await changed(broker, "apply", span);
    await changed(broker, "undo", span);
    expect(existsSync(join(broker.project, "run"))).toBe(false);
    expect((await broker.cli(["trace", "verify"])).code).toBe(0);
    const events = broker.spans().filter(({ held_changes: event }) => event !== undefined);
    expect(events.filter(({ outcome }) => outcome === "lost")).toEqual([]);
  });

  test.each([
    ["a span that is not there", "spn_none", 404],
    ["no span at all", "%00", 404],
  ])("are not found for %s", async (_what, span, status) => {
    expect(errorIn(await broker.operator("GET", `/v1/diff/${span}`)).status).toBe(status);
    expect(errorIn(await change(broker, "apply", span)).status).toBe(status);
  });

  test("are none of a plain command: the answer says that it was not isolated", async () => {
    const { span_id: span } = await broker.run("echo x > plain");
    expect(errorIn(await broker.operator("GET", `/v1/diff/${span}`))).toMatchObject({ code: "not_found" });
  });

  test("are refused by a path that holds none, and by one that leads out", async () => {
    const { span_id: span } = await isolated(broker, WORK);
    for (const paths of [["nothing"], ["../home"], ["/etc"], ["run", "nothing"]])
      expect(errorIn(await change(broker, "apply", span, paths))).toMatchObject({ code: "invalid_request" });
    expect(existsSync(join(broker.project, "run"))).toBe(false);
  });
});
