import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { hostName } from "../../../../../broker/network/names/names.ts";
import { parsePolicy } from "../../../../../broker/policy/index.ts";

describe("spellings of one name are one name:", () => {
  test.each([
    ["example.com", "example.com"],
    ["EXAMPLE.Com", "example.com"],
    ["example.com.", "example.com"],
    ["bücher.example", "xn--bcher-kva.example"],
    ["BÜCHER.example", "xn--bcher-kva.example"],
    ["xn--bcher-kva.example", "xn--bcher-kva.example"],
    ["XN--BCHER-KVA.example", "xn--bcher-kva.example"],
    ["example\u3002com", "example.com"],
    ["ｅｘａｍｐｌｅ.com", "example.com"],
    ["exam\u00adple.com", "example.com"],
    ["_dmarc.example.com", "_dmarc.example.com"],
    ["r3---sn-x.example", "r3---sn-x.example"],
    ["localhost", "localhost"],
    ["1.example", "1.example"],
    ["0x7f.example", "0x7f.example"],
    ["1e10", "1e10"],
  ])("%j is %j", (text, name) => {
    expect(hostName(text)).toBe(name);
  });
});

test("a letter of another alphabet makes another name, however it looks", () => {
  expect(hostName("аpple.com")).toBe("xn--pple-43d.com");
  expect(hostName("аpple.com")).not.toBe(hostName("apple.com"));
});

describe("no name is", () => {
  const long = "a".repeat(63);
  test.each([
    ["nothing", ["", ".", "..", "a..b", ".a", "a.."]],
    ["an address in dots", ["127.0.0.1", "127.1", "1.2.3.4.", "0177.0.0.1", "0x7f.0.0.1", "256.256.256.256"]],
    ["an address as a number", ["2130706433", "0x7f000001", "017700000001", "0", "0x", "0X7F.1"]],
    ["what ends in a number", ["a.1", "a.0x1", "example.127", "a.0x"]],
    ["an address of IPv6", ["::1", "[::1]", "::ffff:127.0.0.1", "0:0:0:0:0:ffff:7f00:1"]],
    ["an address in other digits", ["１２７.0.0.1", "127。0。0。1", "①②⑦.0.0.1"]],
    ["with a control", ["a\0b.com", "a.com\0", "a\nb", "a\tb", "a\u0080b", "a\u007fb", "a\u202eb.com"]],
    ["with what separates parts of a URL", ["a/b", "a?b", "a#b", "a@b", "a:80", "a%2eb", "a\\b", "a／b"]],
    ["with a blank", [" a", "a ", "a b", "a\u00a0b", "a\u3000b"]],
    ["a wildcard", ["*", "*.a", "a*"]],
    ["half a character", ["\ud800.com", "a\udc00"]],
    ["punycode of nothing", ["xn--", "xn--a", "xn--a-ecp.ru", "a.XN--a"]],
    ["too long", [`${long}a.com`, `${long}.${long}.${long}.${long}`, "a".repeat(1_000_000)]],
  ])("%s", (_what, texts) => {
    for (const text of texts) expect([text.slice(0, 80), hostName(text)]).toEqual([text.slice(0, 80), null]);
  });
});

test("253 characters are a name, and 254 with the last dot", () => {
  const name = `${`${"a".repeat(49)}.`.repeat(5)}com`;
  expect(name.length).toBe(253);
  expect(hostName(name)).toBe(name);
  expect(hostName(`${name}.`)).toBe(name);
  expect(hostName(`b${name}`)).toBeNull();
});

test("what comes out is spelled in one way only, and stays what it is", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: "binary" }), fc.domain(), fc.webAuthority()), (text) => {
      const name = hostName(text);
      if (name === null) return;
      expect(name).toMatch(/^[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*$/);
      expect(hostName(name)).toBe(name);
      expect(hostName(`${name}.`)).toBe(name);
      expect(hostName(name.toUpperCase())).toBe(name);
    }),
    { numRuns: 3000 },
  );
});

test("no text takes long, whatever it holds", () => {
  const texts = ["a.", "\u00fc", "xn--", "-", "\u{1f600}", "ﷺ", "\0"].map((part) => part.repeat(500_000));
  const before = process.cpuUsage();
  for (const text of texts) for (const cut of [text, text.slice(0, 500), text.slice(0, 255)]) hostName(cut);
  const { user, system } = process.cpuUsage(before);
  expect(user + system).toBeLessThan(1_000_000);
});

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
