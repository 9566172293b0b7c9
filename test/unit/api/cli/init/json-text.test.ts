import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  nodeAt,
  readJson,
  strangeFor,
  valueOf,
  withElement,
  withProperty,
  withoutChild,
} from "../../../../../api/cli/init/json-text.ts";
import { NotUnderstood } from "../../../../../api/cli/init/not-understood.ts";

describe("edits of JSON as text", () => {
  test.each([
    ["{}", '{\n  "n": 1\n}'],
    ["{ }\n", '{\n  "n": 1\n}\n'],
    ['{"a": 1}', '{"a": 1, "n": 1}'],
    ['{ "a":1 }', '{ "a":1, "n": 1 }'],
    ['{ "a":1, }', '{ "a":1, "n": 1, }'],
    ['{\n\t"a": 1 // why\n}', '{\n\t"a": 1, // why\n\t"n": 1\n}'],
    ['{\n\t"a": 1, /* why */ // too\n}', '{\n\t"a": 1, /* why */ // too\n\t"n": 1,\n}'],
    ['{\r\n    "a"  :  [1]\r\n}\r\n', '{\r\n    "a"  :  [1],\r\n    "n": 1\r\n}\r\n'],
    ['{\n  "a": 1 /* two\n lines */\n  // last\n}', '{\n  "a": 1, /* two\n lines */\n  "n": 1\n  // last\n}'],
    ["{ // empty\n}", '{ // empty\n  "n": 1\n}'],
    ['{\n  "a": 1 }', '{\n  "a": 1,\n  "n": 1 }'],
    ['{\n  "a": 1\n  , "b": 2\n}', '{\n  "a": 1\n  , "b": 2,\n  "n": 1\n}'],
  ])("a property is added to %j without touching the rest, and taken out again", (before, after) => {
    const edited = withProperty(before, [], "n", 1);
    expect(edited).toBe(after);
    // Blanks alone inside of brackets are not kept.
    expect(withoutChild(edited, ["n"])).toBe(before.replace("{ }", "{}"));
  });

  test.each([
    ['{"l": []}', '{"l": [\n  {"x": 1}\n]}'],
    ['{\n  "l": [1, 2]\n}', '{\n  "l": [1, 2, {"x":1}]\n}'],
    ['{\n  "l": [\n    1 // one\n  ]\n}', '{\n  "l": [\n    1, // one\n    {\n      "x": 1\n    }\n  ]\n}'],
  ])("an element is added to the list of %j", (before, after) => {
    const edited = withElement(before, ["l"], { x: 1 });
    if (!before.includes("[]")) expect(edited).toBe(after);
    expect(valueOf(readJson(edited))).toEqual({
      l: [...(valueOf(readJson(before)) as { l: [] }).l, { x: 1 }],
    });
    const last = (nodeAt(readJson(edited), ["l"])?.children?.length ?? 0) - 1;
    expect(withoutChild(edited, ["l", last])).toBe(before);
  });

  test("whatever the layout, an added property is the only change, and its removal gives the text back", () => {
    const space = fc.constantFrom("", " ", "\n", "\r\n\t", ' // a, "b": {\n', " /* , } */ ", "\n\n  ");
    const property = fc.tuple(space, space, fc.jsonValue({ maxDepth: 2 }), space);
    const object = fc.tuple(fc.array(property, { minLength: 1, maxLength: 4 }), fc.boolean());
    fc.assert(
      fc.property(object, ([properties, trailing]) => {
        const body = properties.map(
          ([a, b, value, c], index) =>
            `${a}"k${index}"${b.includes("//") ? " " : b}: ${JSON.stringify(value)}${c}`,
        );
        const before = `{${body.join(",")}${trailing ? "," : ""}\n}`;
        const edited = withProperty(before, [], "n", { x: [1] });
        expect(valueOf(readJson(edited))).toEqual({
          ...(valueOf(readJson(before)) as object),
          n: { x: [1] },
        });
        expect(withoutChild(edited, ["n"])).toBe(before);
      }),
      { numRuns: 300 },
    );
  });

  test.each([
    ['{\n  "a": \n}', "ValueExpected at line 3, column 1"],
    ['{\n  "a": 1,\n  "a": 2\n}', "the key 'a' stands twice, again at line 3, column 3"],
    ['{"a": [}', "at line 1, column 8"],
    ["", "at line 1, column 1"],
  ])("%j is refused with its place", (text, place) => {
    expect(() => readJson(text)).toThrow(NotUnderstood);
    expect(() => readJson(text)).toThrow(place);
  });

  test("a value of another type is not overwritten", () => {
    expect(() => withElement('{\n "hooks": "none"\n}', ["hooks"], 1)).toThrow(
      "'hooks' is not a list, at line 2, column 11",
    );
    expect(() => withProperty("[]", [], "a", 1)).toThrow("the whole is not an object, at line 1, column 1");
  });

  test("what an agent's own parser does not take is named", () => {
    const strict = { comments: false, bom: false };
    expect(strangeFor('{"a": 1}', strict)).toBeUndefined();
    expect(strangeFor('{\n  // c\n  "a": 1}', strict)).toBe("a comment at line 2, column 3");
    expect(strangeFor('{\n  // c\n  "a": 1}', { comments: true, bom: false })).toBeUndefined();
    expect(strangeFor('{"a": 1,}', { comments: true, bom: true })).toBe(
      "a comma too many at line 1, column 9",
    );
    expect(strangeFor("\uFEFF{}", strict)).toBe("a byte order mark at its beginning");
    expect(strangeFor("\uFEFF{}", { comments: false, bom: true })).toBeUndefined();
  });
});
