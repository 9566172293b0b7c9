import { describe, expect, test } from "vitest";
import { parsePolicy } from "../../../broker/policy/index.ts";

describe("an entry that could not be kept to is refused where it stands:", () => {
  test.each([
    ["*", /a host name/],
    ["127.1", /no host name, no address/],
    ["0x7f000001", /no host name, no address/],
    ["010.0.0.1/8", /no host name, no address/],
    ["10.0.0.0/33", /no host name, no address/],
    ["256.0.0.1", /no host name, no address/],
    ["fd00::/129", /no host name, no address/],
    ["a..b", /a host name/],
    ["a.example:0", /ports are 1 to 65535, and not 0/],
    ["a.example:65536", /ports are 1 to 65535, and not 65536/],
    ["host.internal", /needs a port/],
    ["https://a.example", /a host name/],
    ["≠\u0080.example", /no host name, no address/],
    ["@unknown", /@npm/],
  ])("%s", (written, says) => {
    const text = `id: a\nname: A\nnet:\n  allowed:\n    - b.example\n    - ${JSON.stringify(written)}\n`;
    const loaded = parsePolicy(text, "bad.yaml");
    const problems = "problems" in loaded ? loaded.problems : [];
    expect(problems.map(({ line, column }) => [line, column])).toEqual([[6, 7]]);
    expect(problems[0]?.message).toMatch(says);
  });
});
