import { existsSync, lstatSync, readFileSync, readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestBroker } from "../support/broker/broker.ts";
import { change, changed, diffOf, errorIn, isolated, isolating } from "../support/held/changes.ts";
import { type Deed, HeldPlace } from "../support/held/place.ts";
import { HeldSpans, below, buildSetter, upper } from "../support/held/spans.ts";
import { actorsWith, needs } from "../support/run/needs.ts";
import { skip } from "../support/run/skips.ts";
import { actors } from "../support/users/users.ts";

describe.each(actors())("applying held changes, as $kind", (actor) => {
  const root = actor.uid === 0;
  let place: HeldPlace;
  let set: string;
  let spans: HeldSpans;

  beforeAll(async () => {
    place = await HeldPlace.open(actor);
    spans = new HeldSpans(place);
    set = buildSetter(place.folder);
  });

  afterAll(async () => {
    await place[Symbol.asyncDispose]();
  });

  const span: HeldSpans["span"] = (deeds) => spans.span(deeds);
  const unchanged: HeldSpans["unchanged"] = (held, act, kind) => spans.unchanged(held, act, kind);

  test.each(root ? ["trusted"] : ["user"])(
    "a folder that is opaque in %s. hides what was below; one that says something else there hides nothing",
    async (prefix) => {
      const held = await span();
      await place.sh('mkdir "$1/folder" && echo new > "$1/folder/three"', upper(held, ""));
      await place.sh('"$1" "$2" "$3" y', set, upper(held, "folder"), `${prefix}.overlay.opaque`);
      expect((await place.list(held)).map(({ path, kind }) => `${kind} ${path}`)).toEqual([
        "delete folder/one",
        "write folder/three",
        "delete folder/two",
      ]);
      expect(await place.apply(held)).toMatchObject({ kind: "done", left: [] });
      expect(readdirSync(below(held, "folder"))).toEqual(["three"]);
      expect(await place.undo(held)).toMatchObject({ kind: "done" });
      expect(readdirSync(below(held, "folder")).sort()).toEqual(["one", "two"]);

      const twin = await span();
      await place.sh('mkdir "$1/folder" && echo new > "$1/folder/three"', upper(twin, ""));
      await place.sh('"$1" "$2" "$3" x', set, upper(twin, "folder"), `${prefix}.overlay.opaque`);
      expect(await place.apply(twin)).toMatchObject({ kind: "done" });
      expect(readdirSync(below(twin, "folder")).sort()).toEqual(["one", "three", "two"]);
    },
  );

  test("a mark that a command could have set itself hides nothing and is refused", async () => {
    if (!root) {
      skip("a mark of a command's own in its layer, as an ordinary user", "there the mounts take such marks");
      return;
    }
    const held = await span();
    await place.sh('mkdir "$1/folder" && echo new > "$1/folder/three"', upper(held, ""));
    await place.sh('"$1" "$2" user.overlay.opaque y', set, upper(held, "folder"));
    expect((await place.list(held)).map(({ path }) => path)).toEqual(["folder/three"]);
    await unchanged(held, () => place.apply(held), "refused");
  });

  test("a whiteout is a deletion in both forms; an empty file is an empty file", async () => {
    const real = await span([{ deed: "remove", path: "file" }]);
    expect(lstatSync(upper(real, "file")).isCharacterDevice()).toBe(true);
    expect(await place.apply(real)).toMatchObject({ kind: "done", done: ["file"] });
    expect(existsSync(below(real, "file"))).toBe(false);

    const other = await span();
    const prefix = root ? "trusted" : "user";
    await place.sh('mkdir "$1/folder" && : > "$1/folder/one" && : > "$1/folder/two"', upper(other, ""));
    await place.sh('"$1" "$2" "$3" x', set, upper(other, "folder"), `${prefix}.overlay.opaque`);
    await place.sh('"$1" "$2" "$3" y', set, upper(other, "folder/one"), `${prefix}.overlay.whiteout`);
    expect(await place.apply(other)).toMatchObject({ kind: "done", done: ["folder/one", "folder/two"] });
    expect(readdirSync(below(other, "folder"))).toEqual(["two"]);
    expect(readFileSync(below(other, "folder/two"), "utf8")).toBe("");
  });

  test.each(["metacopy", "redirect"])(
    "what %s says lies elsewhere is refused, and the rest can be applied",
    async (mark) => {
      const held = await span();
      const prefix = root ? "trusted" : "user";
      await place.sh(
        'mkdir "$1/d" && echo x > "$1/d/inner" && : > "$1/file" && echo ok > "$1/fine"',
        upper(held, ""),
      );
      const marked = mark === "redirect" ? "d" : "file";
      await place.sh('"$1" "$2" "$3" /folder', set, upper(held, marked), `${prefix}.overlay.${mark}`);
      await unchanged(held, () => place.apply(held), "refused");
      expect(await place.apply(held, [marked])).toMatchObject({
        refusals: [
          { reason: expect.stringContaining("elsewhere") as string },
          ...(mark === "redirect" ? [{}] : []),
        ],
      });
      expect(await place.apply(held, ["fine"])).toMatchObject({ kind: "done", done: ["fine"] });
    },
  );

  test("setuid, setgid, pipes and sockets are refused one by one; a plain program beside them is applied", async () => {
    const held = await span();
    const script =
      'cd "$1"; echo x > suid; chmod 4755 suid; echo x > sgid; chmod 2755 sgid; mkfifo pipe; echo x > run; chmod 755 run';
    await place.sh(script, upper(held, ""));
    await place
      .sh(
        '"$1" -e "require(\'net\').createServer().listen(process.argv[1], () => process.kill(process.pid, 9))" "$2/socket" || true',
        process.execPath,
        upper(held, ""),
      )
      .catch(() => undefined);
    const bad = ["suid", "sgid", "pipe", ...(existsSync(upper(held, "socket")) ? ["socket"] : [])];
    await unchanged(held, () => place.apply(held), "refused");
    for (const path of bad) {
      const ending = await place.apply(held, [path]);
      expect(ending).toMatchObject({ kind: "refused", refusals: [{ path }] });
    }
    expect(await place.apply(held, ["run"])).toMatchObject({ kind: "done" });
    expect(lstatSync(below(held, "run")).mode & 0o7777).toBe(0o755);
  });

  test("devices and file capabilities are refused; the same file without one is applied", async () => {
    needs("python3");
    if (!root) {
      skip("devices and file capabilities that are held, as an ordinary user", "only root can make them");
      return;
    }
    const held = await span();
    await place.sh(
      'mknod "$1/disk" b 7 0; mknod "$1/null" c 1 3; echo x > "$1/capable"; cp "$1/capable" "$1/plain"',
      upper(held, ""),
    );
    await place.sh(
      'python3 -c \'import os,sys; os.setxattr(sys.argv[1], "security.capability", bytes.fromhex("0100000200040000000000000000000000000000"))\' "$1" 2>/dev/null || setcap cap_net_raw+ep "$1"',
      upper(held, "capable"),
    );
    for (const path of ["disk", "null", "capable"])
      expect(await place.apply(held, [path])).toMatchObject({ kind: "refused", refusals: [{ path }] });
    await unchanged(held, () => place.apply(held), "refused");
    expect(await place.apply(held, ["plain"])).toMatchObject({ kind: "done" });
  });

  test("a file becomes a folder, a folder a file or a link, a link a folder, and back again", async () => {
    const held = await span([
      { deed: "remove", path: "file" },
      { deed: "dir", path: "file" },
      { deed: "file", path: "file/inner", text: "x" },
      { deed: "remove", path: "folder" },
      { deed: "link", path: "folder", text: "/etc" },
      { deed: "remove", path: "pointer" },
      { deed: "dir", path: "pointer" },
    ]);
    const before = await place.look(held.project);
    expect(await place.apply(held)).toMatchObject({ kind: "done", left: [] });
    expect(readFileSync(below(held, "file/inner"), "utf8")).toBe("x");
    expect(readlinkSync(below(held, "folder"))).toBe("/etc");
    expect(lstatSync(below(held, "pointer")).isDirectory()).toBe(true);
    expect(await place.undo(held)).toMatchObject({ kind: "done" });
    expect(await place.look(held.project)).toEqual(before);
  });

  test("a folder that was swapped for a link between diff and apply is not gone through", async () => {
    const held = await span([{ deed: "file", path: "folder/new", text: "new" }]);
    await place.list(held);
    const outside = join(place.folder, "projects", "swapped-to");
    await place.sh('mkdir "$1"; mv "$2" "$2-moved"; ln -s "$1" "$2"', outside, below(held, "folder"));
    await unchanged(held, () => place.apply(held), "conflict");
    expect(readdirSync(outside)).toEqual([]);
    await place.sh('rm "$1"; mv "$1-moved" "$1"', below(held, "folder"));
    expect(await place.apply(held)).toMatchObject({ kind: "done" });
    expect(readFileSync(below(held, "folder/new"), "utf8")).toBe("new");
  });

  test("a folder that was swapped for another folder is a conflict", async () => {
    const held = await span([{ deed: "append", path: "folder/one", text: "more" }]);
    await place.list(held);
    await place.sh('cp -a "$1" "$1-2"; mv "$1" "$1-1"; mv "$1-2" "$1"', below(held, "folder"));
    await unchanged(held, () => place.apply(held), "conflict");
  });

  test.each([
    ["edited", 'echo edited > "$1/file"'],
    ["of another mode", 'chmod 600 "$1/file"'],
    ["deleted", 'rm "$1/file"'],
    ["replaced by an older file", 'cp -p "$1/kept" "$1/n"; mv "$1/n" "$1/file"'],
    ["a link", 'rm "$1/file"; ln -s kept "$1/file"'],
    ["a folder", 'rm "$1/file"; mkdir "$1/file"'],
  ])(
    "a target that is %s since is a conflict, and a neighbour that changed is none",
    async (_what, script) => {
      const deeds: Deed[] = [
        { deed: "append", path: "file", text: "more" },
        { deed: "remove", path: "folder/one" },
      ];
      const held = await span(deeds);
      await place.list(held);
      await place.sh(script, held.project);
      await unchanged(held, () => place.apply(held), "conflict");
      expect(await place.apply(held)).toMatchObject({ conflicts: [{ path: "file" }] });
      expect(await place.apply(held, ["folder/one"])).toMatchObject({ kind: "done", left: ["file"] });

      const twin = await span(deeds);
      await place.list(twin);
      await place.sh('echo x > "$1/beside"; echo y > "$1/folder/beside"; echo z > "$1/kept"', twin.project);
      expect(await place.apply(twin)).toMatchObject({ kind: "done", left: [] });
      expect(readFileSync(below(twin, "file"), "utf8")).toBe("beforemore");
    },
  );

  test("what appeared where a command made something, or in a folder that it deleted, is a conflict", async () => {
    const held = await span([
      { deed: "file", path: "new", text: "n" },
      { deed: "remove", path: "folder" },
    ]);
    await place.list(held);
    await place.sh('echo mine > "$1/new"; echo mine > "$1/folder/three"', held.project);
    await unchanged(held, () => place.apply(held), "conflict");
    await unchanged(held, () => place.apply(held, ["folder"]), "conflict");
    await unchanged(held, () => place.apply(held, ["new"]), "conflict");
    await place.sh('rm "$1/new"', held.project);
    expect(await place.apply(held, ["new"])).toMatchObject({ kind: "done" });
  });

  test("a denied name is applied by nobody, nor taken along by the folder that goes; others are", async () => {
    const held = await span([
      { deed: "append", path: "file", text: "x" },
      { deed: "remove", path: "folder" },
    ]);
    await unchanged(held, () => place.apply(held, null, ["file"]), "refused");
    await unchanged(held, () => place.apply(held, ["folder"], ["folder/two"]), "refused");
    expect(await place.apply(held, ["folder"], ["file"])).toMatchObject({ kind: "done" });
  });
});

describe.each(actors())("held changes that are applied, taken back or thrown away, as $kind", (actor) => {
  let place: HeldPlace;
  let spans: HeldSpans;

  beforeAll(async () => {
    place = await HeldPlace.open(actor);
    spans = new HeldSpans(place);
  });

  afterAll(async () => {
    await place[Symbol.asyncDispose]();
  });

  const span: HeldSpans["span"] = (deeds) => spans.span(deeds);
  const unchanged: HeldSpans["unchanged"] = (held, act, kind) => spans.unchanged(held, act, kind);

  test("an applied change that somebody touched is not taken back; untouched ones are", async () => {
    const held = await span([
      { deed: "append", path: "file", text: "x" },
      { deed: "dir", path: "made" },
      { deed: "file", path: "made/inner", text: "x" },
    ]);
    expect(await place.apply(held)).toMatchObject({ kind: "done" });
    await place.sh('echo mine >> "$1/made/inner"', held.project);
    await unchanged(held, () => place.undo(held), "conflict");
    await unchanged(held, () => place.undo(held, ["made"]), "conflict");
    expect(await place.undo(held, ["file"])).toMatchObject({ kind: "done", done: ["file"] });
    expect(readFileSync(below(held, "file"), "utf8")).toBe("before");
  });

  test("another folder in the project's place is not looked at, nor changed; what is held of the project can be thrown away", async () => {
    const applied = await span([{ deed: "append", path: "file", text: "x" }]);
    expect(await place.apply(applied)).toMatchObject({ kind: "done" });
    await place.sh('cp -a "$1" "$1-other"; mv "$1" "$1-away"; mv "$1-other" "$1"', applied.project);
    await unchanged(applied, () => place.undo(applied), "failed");
    const held = await span([{ deed: "append", path: "file", text: "x" }]);
    await place.sh('cp -a "$1" "$1-other"; mv "$1" "$1-away"; mv "$1-other" "$1"', held.project);
    await expect(place.list(held)).rejects.toThrow("the path now leads to another folder");
    await expect(place.content(held, "file", 9)).rejects.toThrow("the path now leads to another folder");
    await unchanged(held, () => place.apply(held), "failed");
    await place.sh('mv "$1" "$1-other"; mv "$1-away" "$1"', applied.project);
    expect(await place.undo(applied)).toMatchObject({ kind: "done" });
    expect(readFileSync(below(applied, "file"), "utf8")).toBe("before");
    expect(await place.discard(held)).toMatchObject({ kind: "done", done: ["file"] });
  });

  test("nobody's file is read through a link on either side", async () => {
    const held = await span([{ deed: "append", path: "file", text: "x" }]);
    expect(await place.content(held, "file", 100)).toMatchObject({ before: "before", after: "beforex" });
    await place.sh(
      'rm "$1/file"; ln -s /etc/passwd "$1/file"; rm "$2/file"; ln -s /etc/passwd "$2/file"',
      held.project,
      upper(held, ""),
    );
    expect(await place.content(held, "file", 100)).toMatchObject({ before: null, after: null });
  });

  test("what is discarded is held no more and cannot be applied; the rest can", async () => {
    const held = await span([
      { deed: "append", path: "file", text: "x" },
      { deed: "file", path: "new", text: "n" },
    ]);
    expect(await place.discard(held, ["file"])).toMatchObject({
      kind: "done",
      done: ["file"],
      left: ["new"],
    });
    expect(await place.apply(held, ["file"])).toMatchObject({
      kind: "refused",
      refusals: [{ path: "file" }],
    });
    expect(await place.apply(held)).toMatchObject({ kind: "done", done: ["new"] });
    expect(readFileSync(below(held, "file"), "utf8")).toBe("before");
  });

  test("two applies at once are one after the other: one is done, and the other finds nothing to do", async () => {
    const held = await span([{ deed: "append", path: "file", text: "x" }]);
    const endings = await Promise.all([place.apply(held, ["file"]), place.apply(held, ["file"])]);
    expect(endings.map(({ kind }) => kind).sort()).toEqual(["done", "refused"]);
    expect(readFileSync(below(held, "file"), "utf8")).toBe("beforex");
  });
});

describe.each(actorsWith("python3"))("folders in each other without end, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: isolating() } });
  });
  afterAll(() => broker.stop());

  test("are shown, refused and discarded; what lies beside them is applied", async () => {
    const script = "import os\nfor i in range(5000):\n    os.mkdir('q'); os.chdir('q')";
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
    expect(error.message).toContain("the path is too long");
    expect(existsSync(join(broker.project, "q"))).toBe(false);
    await changed(broker, "apply", span, ["fine"]);
    expect(readFileSync(join(broker.project, "fine"), "utf8")).toBe("fine\n");
    expect((await changed(broker, "discard", span)).left).toEqual([]);
  }, 180_000);
});
