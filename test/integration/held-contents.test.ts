import {
  chmodSync,
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { homeLayout } from "../../broker/settings/home.ts";
import { ROOT_OVERLAY, TestBroker, eventually } from "../support/broker/broker.ts";
import { change, changed, diffOf, errorIn, fill, isolated, isolating } from "../support/held/changes.ts";
import { type Deed, HeldPlace } from "../support/held/place.ts";
import { below } from "../support/held/spans.ts";
import { actors } from "../support/users/users.ts";

describe.each(actors())("a file of a terabyte that is nearly empty, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: isolating() } });
  });
  afterAll(() => broker.stop());

  test("is compared by what it holds: shown, applied and taken back at once", async () => {
    fill(broker, { a: "one\n" });
    await broker.run("truncate -s 1T big; printf end | dd of=big bs=1 seek=900G conv=notrunc status=none");
    const { span_id: touched } = await isolated(broker, "cp a n; touch big");
    expect(JSON.stringify(await diffOf(broker, touched))).toContain('"n"');
    expect(await changed(broker, "apply", touched)).toMatchObject({ done: ["big", "n"] });
    const { span_id: written } = await isolated(
      broker,
      "truncate -s 2T big; printf more | dd of=big bs=1 seek=1500G conv=notrunc status=none",
    );
    expect(await changed(broker, "apply", written)).toMatchObject({ done: ["big"] });
    expect(statSync(join(broker.project, "big")).size).toBe(2 * 1024 ** 4);
    expect(await changed(broker, "undo", written)).toMatchObject({ done: ["big"] });
    expect((await broker.run("stat -c %s big; dd if=big bs=1 skip=900G count=3 status=none")).stdout).toBe(
      `${1024 ** 4}\nend`,
    );
  });
});

describe.each(actors())("a file that holds what the command saw, as $kind", (actor) => {
  let broker: TestBroker;
  let file: string;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: isolating() } });
    file = join(broker.project, "f");
  });
  afterAll(() => broker.stop());
  beforeEach(() => {
    rmSync(file, { force: true });
    fill(broker, { f: "one\n" });
  });

  async function heldAndLookedAt(cmd: string): Promise<string> {
    // The kernel stamps files by a clock of 10 ms at most: an edit in the tick of the mount passes for an earlier one.
    await sleep(20);
    const { span_id: span } = await isolated(broker, cmd);
    const { overlay } = homeLayout(broker.home, actor.uid === 0 ? ROOT_OVERLAY : undefined);
    const contents = join(overlay, span, "contents");
    expect(await eventually(() => existsSync(contents), 10_000)).toBe(true);
    return span;
  }

  function replaced(content: string): void {
    const { uid, gid, mode } = statSync(file);
    fill(broker, { beside: content });
    chmodSync(join(broker.project, "beside"), mode);
    expect(statSync(join(broker.project, "beside"))).toMatchObject({ uid, gid });
    renameSync(join(broker.project, "beside"), file);
  }

  test.each([
    ["that was touched", () => utimesSync(file, new Date(), new Date())],
    [
      "that was changed and changed back",
      () => {
        writeFileSync(file, "other\n");
        writeFileSync(file, "one\n");
      },
    ],
    ["in whose place another one came with the same bytes", () => replaced("one\n")],
    [
      "whose mode was another one for a while",
      () => {
        const { mode } = statSync(file);
        chmodSync(file, 0o600);
        chmodSync(file, mode);
      },
    ],
  ])("one %s is no conflict, and neither is its removal", async (_what, act) => {
    const span = await heldAndLookedAt("echo two >> f");
    act();
    expect(await changed(broker, "apply", span)).toMatchObject({ done: ["f"], left: [] });
    expect(readFileSync(file, "utf8")).toBe("one\ntwo\n");
    rmSync(file);
    fill(broker, { f: "one\n" });
    const removal = await heldAndLookedAt("rm f");
    act();
    expect(await changed(broker, "apply", removal)).toMatchObject({ done: ["f"] });
    expect(existsSync(file)).toBe(false);
  });

  test.each([
    ["with other bytes of the same length", () => writeFileSync(file, "ONE\n")],
    ["with another mode", () => chmodSync(file, 0o600)],
    ["in whose place another one came with other bytes", () => replaced("ONE\n")],
  ])("one %s is a conflict, which goes away with its cause", async (_what, act) => {
    const { mode } = statSync(file);
    const span = await heldAndLookedAt("echo two >> f");
    act();
    const before = readFileSync(file, "utf8");
    const error = errorIn(await change(broker, "apply", span));
    expect(error).toMatchObject({ status: 409, code: "apply_conflict", conflicts: [{ path: "f" }] });
    expect(readFileSync(file, "utf8")).toBe(before);
    writeFileSync(file, "one\n");
    chmodSync(file, mode);
    expect(await changed(broker, "apply", span)).toMatchObject({ done: ["f"] });
    expect(readFileSync(file, "utf8")).toBe("one\ntwo\n");
    await changed(broker, "undo", span);
    expect(readFileSync(file, "utf8")).toBe("one\n");
  });
});

describe.each(actors())("held changes that are applied in parts, as $kind", (actor) => {
  let place: HeldPlace;
  beforeAll(async () => {
    place = await HeldPlace.open(actor);
  });
  afterAll(async () => {
    await place[Symbol.asyncDispose]();
  });

  const MADE: readonly Deed[] = [
    { deed: "dir", path: "new", mode: 0o755 },
    { deed: "dir", path: "new/deep", mode: 0o700 },
    { deed: "file", path: "new/deep/one", text: "1", mode: 0o644, time: 1_000_000_000 },
    { deed: "file", path: "new/two", text: "2", mode: 0o600, time: 1_000_000_000 },
  ];

  test.each<[string, readonly Deed[]]>([
    ["a new folder", []],
    ["a folder that stands for a file", [{ deed: "file", path: "new", text: "before" }]],
  ])("%s stays when all that it held is taken back by name, and takes it again", async (what, base) => {
    const held = await place.project(`stays-${what.replaceAll(" ", "-")}`, base);
    const before = await place.look(held.project);
    const seen = await place.isolated(held, [{ deed: "remove", path: "new" }, ...MADE]);
    expect(await place.apply(held)).toMatchObject({ kind: "done", left: [] });
    const files = ["new/deep/one", "new/two"];
    expect(await place.undo(held, files)).toMatchObject({ kind: "done", left: ["new", "new/deep"] });
    expect(existsSync(below(held, "new/deep"))).toBe(true);
    expect(existsSync(below(held, "new/two"))).toBe(false);
    expect(await place.apply(held)).toMatchObject({ kind: "done", done: files, left: [] });
    expect(Object.keys((await place.look(held.project)).tree)).toEqual(Object.keys(seen.tree));
    expect(await place.undo(held)).toMatchObject({ kind: "done", left: [] });
    expect(await place.look(held.project)).toEqual(before);
  });

  test("a folder that was made anew comes back as it was when it was applied in two goes", async () => {
    const file = (path: string, text: string): Deed => ({
      deed: "file",
      path,
      text,
      mode: 0o644,
      time: 1_000_000_000,
    });
    const folder: Deed = { deed: "dir", path: "ex", mode: 0o755 };
    const held = await place.project("anew", [folder, file("ex/a", "old a"), file("ex/b", "old b")]);
    const before = await place.look(held.project);
    const deeds = [{ deed: "remove", path: "ex" }, folder, file("ex/a", "new a"), file("ex/c", "new c")];
    const seen = await place.isolated(held, deeds);
    expect(await place.apply(held, ["ex/a"])).toMatchObject({ kind: "done", done: ["ex/a"] });
    expect(await place.apply(held)).toMatchObject({ kind: "done", left: [] });
    expect(Object.keys((await place.look(held.project)).tree)).toEqual(Object.keys(seen.tree));
    expect(await place.undo(held)).toMatchObject({ kind: "done", left: [] });
    expect(await place.look(held.project)).toEqual(before);
  });

  test("a folder has its times back when something was put into it before its mode was applied", async () => {
    const folder: Deed = { deed: "dir", path: "old", mode: 0o755 };
    const held = await place.project("mode", [folder]);
    const before = await place.look(held.project);
    await place.isolated(held, [
      { deed: "link", path: "old/a", text: "/nowhere" },
      { deed: "chmod", path: "old", mode: 0o700 },
    ]);
    expect(await place.apply(held, ["old/a"])).toMatchObject({ kind: "done", done: ["old/a"] });
    expect(await place.apply(held)).toMatchObject({ kind: "done", done: ["old"] });
    expect(await place.undo(held)).toMatchObject({ kind: "done", left: [] });
    expect(await place.look(held.project)).toEqual(before);
  });

  test.each([
    ["beside each other", ["old/a", "old/b"]],
    ["above each other", ["a", "old/a"]],
  ])(
    "what was put %s one by one, and taken back so, leaves folders with the times they had",
    async (how, paths) => {
      const held = await place.project(`times-${how.slice(0, 5)}`, [
        { deed: "dir", path: "old", mode: 0o755 },
      ]);
      const before = await place.look(held.project);
      await place.isolated(
        held,
        paths.map((path) => ({ deed: "link", path, text: "/nowhere" })),
      );
      for (const path of paths) expect(await place.apply(held, [path])).toMatchObject({ kind: "done" });
      for (const path of paths) expect(await place.undo(held, [path])).toMatchObject({ kind: "done" });
      expect(await place.look(held.project)).toEqual(before);
    },
  );

  test("what lies in an applied folder that somebody removed since is told to have no place, and is not called done", async () => {
    const held = await place.project("removed", []);
    await place.isolated(held, MADE);
    expect(await place.apply(held, ["new/two"])).toMatchObject({ kind: "done" });
    rmSync(below(held, "new"), { recursive: true });
    expect(await place.apply(held)).toMatchObject({
      kind: "conflict",
      conflicts: expect.arrayContaining([
        { path: "new/deep/one", reason: "The folder 'new' around it no longer exists" },
      ]) as unknown,
    });
    expect(existsSync(below(held, "new"))).toBe(false);
  });
});

describe.each(actors())("held changes of files with several names, as $kind", (actor) => {
  let place: HeldPlace;
  beforeAll(async () => {
    place = await HeldPlace.open(actor);
  });
  afterAll(async () => {
    await place[Symbol.asyncDispose]();
  });

  const ONE: readonly Deed[] = [{ deed: "file", path: "a", text: "x" }];
  const LINKED: readonly Deed[] = [...ONE, { deed: "hard", path: "b", from: "a" }];

  test("a name that was added is applied and taken back with the file, in one go or one after the other", async () => {
    for (const [at, orders] of [[null], [["b"], ["a"]], [["a"], ["b"]]].entries()) {
      const held = await place.project(`added-${at}`, ONE);
      const before = await place.look(held.project);
      await place.isolated(held, [{ deed: "hard", path: "b", from: "a" }]);
      expect(await place.apply(held)).toMatchObject({ kind: "done", left: [] });
      expect(statSync(below(held, "b")).ino).toBe(statSync(below(held, "a")).ino);
      for (const paths of orders) expect(await place.undo(held, paths)).toMatchObject({ kind: "done" });
      expect(await place.look(held.project)).toEqual(before);
    }
  });

  test.each<[string, readonly Deed[]]>([
    ["both are written", ["a", "b"].map((path): Deed => ({ deed: "file", path, text: `new ${path}` }))],
    ["both go", ["a", "b"].map((path): Deed => ({ deed: "remove", path }))],
  ])("two names of one file of the project: %s, and it comes back as it was", async (what, deeds) => {
    const held = await place.project(`two-${what.replaceAll(" ", "-")}`, LINKED);
    const before = await place.look(held.project);
    const seen = await place.isolated(held, deeds);
    expect(await place.apply(held)).toMatchObject({ kind: "done", left: [] });
    expect(Object.keys((await place.look(held.project)).tree)).toEqual(Object.keys(seen.tree));
    expect(await place.undo(held)).toMatchObject({ kind: "done", left: [] });
    expect((await place.look(held.project)).tree).toEqual(before.tree);
  });

  test("one that somebody wrote to since is not taken back", async () => {
    const held = await place.project("written", ONE);
    await place.isolated(held, [{ deed: "hard", path: "b", from: "a" }]);
    await place.apply(held);
    writeFileSync(below(held, "b"), "mine");
    expect(await place.undo(held)).toMatchObject({ kind: "conflict" });
    expect(readFileSync(below(held, "a"), "utf8")).toBe("mine");
    expect(existsSync(below(held, "b"))).toBe(true);
  });
});
