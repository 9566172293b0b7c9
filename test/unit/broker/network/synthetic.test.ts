import { describe, expect, test } from "vitest";
import { RANGE_SIZE, SyntheticAddresses } from "../../../../broker/network/synthetic.ts";

describe("addresses that stand for names", () => {
  test("a name keeps its address, and the address leads back to it", () => {
    const addresses = new SyntheticAddresses();
    expect(addresses.addressOf("a.example")).toBe("198.18.0.1");
    expect(addresses.addressOf("b.example")).toBe("198.18.0.2");
    expect(addresses.addressOf("a.example")).toBe("198.18.0.1");
    expect(addresses.nameOf("198.18.0.1")).toBe("a.example");
    expect(addresses.nameOf("198.18.0.2")).toBe("b.example");
    expect(addresses.nameOf("198.18.0.3")).toBeUndefined();
  });

  test("one world's address says nothing about another world's", () => {
    const [one, other] = [new SyntheticAddresses(), new SyntheticAddresses()];
    expect(one.addressOf("a.example")).toBe(other.addressOf("b.example"));
    expect(one.nameOf("198.18.0.1")).toBe("a.example");
    expect(other.nameOf("198.18.0.1")).toBe("b.example");
  });

  test("names of objects' own properties are names like any other", () => {
    const addresses = new SyntheticAddresses();
    expect(addresses.addressOf("constructor")).toBe("198.18.0.1");
    expect(addresses.addressOf("__proto__")).toBe("198.18.0.2");
    expect(addresses.nameOf("198.18.0.2")).toBe("__proto__");
  });

  test("the whole range is given out once, each address to one name, and then nothing more", () => {
    const addresses = new SyntheticAddresses(RANGE_SIZE);
    const given = new Set<string | null>();
    for (let index = 0; index < RANGE_SIZE; index++) given.add(addresses.addressOf(index.toString(36)));
    expect(given.size).toBe(131_070);
    expect(given.has(null)).toBe(false);
    expect(given.has("198.18.0.0")).toBe(false);
    expect(given.has("198.18.0.255")).toBe(true);
    expect(given.has("198.19.255.254")).toBe(true);
    expect(given.has("198.19.255.255")).toBe(false);
    expect(addresses.addressOf("one-more")).toBeNull();
    expect(addresses.addressOf("0")).toBe("198.18.0.1");
    expect(addresses.nameOf("198.19.255.254")).toBe((131_069).toString(36));
  });

  test("long names use up what the broker will remember before they use up the range", () => {
    const addresses = new SyntheticAddresses();
    const tail = "x".repeat(240);
    let given = 0;
    while (addresses.addressOf(`${given}.${tail}`) !== null) given++;
    expect(given).toBeGreaterThan(8000);
    expect(given).toBeLessThan(2 ** 21 / 240);
    expect(addresses.addressOf(`0.${tail}`)).toBe("198.18.0.1");
  });

  test.each([
    "198.18.0.01",
    "198.18.0.257",
    "198.18.0.0",
    "198.20.0.1",
    "0198.18.0.1",
    "198.18.1",
    "::ffff:198.18.0.1",
    " 198.18.0.1",
    "198.18.0.1\n",
    "",
  ])("%j is nobody's address", (address) => {
    const addresses = new SyntheticAddresses();
    for (let index = 0; index < 300; index++) addresses.addressOf(`${index}.example`);
    expect(addresses.nameOf("198.18.1.1")).toBe("256.example");
    expect(addresses.nameOf(address)).toBeUndefined();
  });

  test.each([0, -1, 1.5, RANGE_SIZE + 1, Number.NaN])("a limit of %s names is refused", (most) => {
    expect(() => new SyntheticAddresses(most)).toThrow(RangeError);
  });
});
