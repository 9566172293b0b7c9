import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { ERRORS } from "../../../../api/http/errors.ts";

describe("the error table", () => {
  test("of api/README.md is the one of the code, in both directions", () => {
    const text = readFileSync(new URL("../../../../api/README.md", import.meta.url), "utf8");
    const rows = [...text.matchAll(/^\| `([a-z_]+)` \| (\d{3}) \| (\w+) \|$/gm)];
    const documented = Object.fromEntries(
      rows.map(([, code, status, turn]) => [code, { status: Number(status), turn }]),
    );
    expect(documented).toEqual(ERRORS);
  });

  test("of the schema has the same codes", () => {
    const schema = JSON.parse(
      readFileSync(new URL("../../../../schemas/shared.schema.json", import.meta.url), "utf8"),
    ) as {
      definitions: { error_code: { enum: string[] } };
    };
    expect([...schema.definitions.error_code.enum].sort()).toEqual(Object.keys(ERRORS).sort());
  });
});
