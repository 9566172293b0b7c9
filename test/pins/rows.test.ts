import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { entriesOf, FLAG, modeIn, ROW, rowsOf } from "../../world/overlay/rows.ts";

const HEADER = readFileSync(new URL("../../world/native/changes/overlay_walk.h", import.meta.url), "utf8");

describe("rows of a walk over an upper layer, also on disk as the first look", () => {
  test("have the letters of the native part", () => {
    const kinds = [...HEADER.matchAll(/ROW_[A-Z]+ = '(.)'/g)].map(([, letter]) => letter);
    expect(kinds).toEqual(Object.values(ROW));
    const flags = /ROW_FLAG_LETTERS "(\w+)"/.exec(HEADER)?.[1] ?? "";
    // Nobody asks whether a removed name was hidden by its folder.
    expect([...Object.values(FLAG), "i"].join("")).toBe(flags);
  });

  test("are read as earlier versions kept them", async () => {
    const file = "f 33188 4 1500000000000000001 7 1500000000000000002 1 0 0";
    const fields = ["d", "", "", "", "", "", ".", "d/x", "", "", "", file, "w", "d", "i", "", "", file];
    expect([...rowsOf(fields)].map(({ type, path }) => [type, path])).toEqual([
      ["d", ""],
      [".", "d/x"],
      ["w", "d"],
    ]);
    const entry = (await entriesOf(Buffer.from(`${fields.join("\0")}\0`, "latin1"))).get("d");
    expect(entry).toMatchObject({ kind: "delete", replaced: [{ path: "d/x" }] });
    expect(entry?.below).toMatchObject({ ctime: 1500000000000000002n, links: 1, text: file });
    expect([modeIn(file), modeIn("")]).toEqual([0o100_644, undefined]);
  });
});
