import { expect, test } from "vitest";
import { ROUTES } from "../../../api/http/routes.ts";
import { openapi } from "../../../schemas/generated/openapi.js";

test("the OpenAPI document has every call of the table and no other, each reference leads somewhere, and each file has one name", () => {
  const described = Object.entries(openapi.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method} ${path.replace(/\{(\w+)\}/g, ":$1")}`),
  );
  expect(described.sort()).toEqual(ROUTES.map(({ method, path }) => `${method} ${path}`).sort());
  const references = [...JSON.stringify(openapi).matchAll(/"\$ref":"#\/([^"]+)"/g)].map(([, at]) => at ?? "");
  expect(references.length).toBeGreaterThan(100);
  for (const reference of references) {
    const found = reference
      .split("/")
      .reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], openapi);
    expect(found, reference).toBeTypeOf("object");
  }
});
