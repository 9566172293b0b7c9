import { describe, expect, test } from "vitest";
import { parsePolicy } from "../../../broker/policy/index.ts";

describe("an entry that could not be kept to is refused where it stands:", () => {
  test.each([
    ["*", /a host name/],
    ["127.1", /not a host name, a plainly written address/],
    ["0x7f000001", /not a host name, a plainly written address/],
    ["010.0.0.1/8", /not a host name, a plainly written address/],
    ["10.0.0.0/33", /not a host name, a plainly written address/],
    ["256.0.0.1", /not a host name, a plainly written address/],
    ["fd00::/129", /not a host name, a plainly written address/],
    ["a..b", /a host name/],
    ["a.example:0", /a port must be 1 to 65535, received 0/],
    ["a.example:65536", /a port must be 1 to 65535, received 65536/],
    ["host.internal", /needs a port/],
    ["https://a.example", /a host name/],
    ["≠\u0080.example", /not a host name, a plainly written address/],
    ["@unknown", /@npm/],
  ])("%s", (written, says) => {
    const text = `id: a\nname: A\nnet:\n  allowed:\n    - b.example\n    - ${JSON.stringify(written)}\n`;
    const loaded = parsePolicy(text, "bad.yaml");
    const problems = "problems" in loaded ? loaded.problems : [];
    expect(problems.map(({ line, column }) => [line, column])).toEqual([[6, 7]]);
    expect(problems[0]?.message).toMatch(says);
  });
});
