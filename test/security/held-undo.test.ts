import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { HeldPlace } from "../support/held/place.ts";
import { below, HeldSpans, upper } from "../support/held/spans.ts";

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
    await expect(place.list(held)).rejects.toThrow("another folder stands there now");
    await expect(place.content(held, "file", 9)).rejects.toThrow("another folder stands there now");
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
