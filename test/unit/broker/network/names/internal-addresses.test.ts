import { afterEach, describe, expect, test, vi } from "vitest";
import { internalRange, OwnAddresses } from "../../../../../broker/network/names/internal-addresses.ts";

const INTERNAL: readonly (readonly [range: string, ...addresses: string[]])[] = [
  ["unspecified", "0.0.0.0", "0.1.2.3", "::", "0:0:0:0:0:0:0:0", "::0.0.0.0", "::ffff:0.0.0.0"],
  ["loopback", "127.0.0.1", "127.255.255.254", "::1", "0:0:0:0:0:0:0:1", "0000::0001", "::0.0.0.1"],
  ["loopback", "::ffff:127.0.0.1", "::ffff:7f00:1", "::FFFF:127.0.0.1", "0:0:0:0:0:ffff:7f00:0001"],
  ["loopback", "::127.0.0.1", "::7f00:1", "::ffff:0:127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::7f00:1"],
  ["loopback", "2002:7f00:1::", "2002:7f00:0001:1:2:3:4:5", "2001:0:7f00:1::", "2001:0:cb00:7101::80ff:fffe"],
  ["loopback", "2001:db8::5efe:127.0.0.1", "2001:db8::200:5efe:7f00:1"],
  ["loopback", "2002:7f00:1::5efe:8.8.8.8", "2002:808:808::5efe:127.0.0.1", "2001:0:7f00:1:0:5efe:808:808"],
  ["private", "10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.1.1"],
  ["private", "::ffff:10.0.0.1", "2002:0a00:0001::1", "64:ff9b::192.168.1.1", "2001:0:cb00:7101::f5ff:fffe"],
  ["shared", "100.64.0.1", "100.127.255.255", "::ffff:100.64.0.1"],
  ["link-local", "169.254.0.1", "169.254.255.255", "fe80::1", "febf::1", "::ffff:169.254.1.1"],
  ["metadata", "169.254.169.254", "169.254.170.2", "100.100.100.200", "192.0.0.192", "168.63.129.16"],
  ["metadata", "fd00:ec2::254", "fd00:0ec2:0:0:0:0:0:0254", "fd20:ce::254", "::ffff:169.254.169.254"],
  ["metadata", "::ffff:a9fe:a9fe", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::", "::a9fe:a9fe"],
  ["protocol assignments", "192.0.0.1", "192.0.0.255", "2001:1::1"],
  ["benchmarking", "198.18.0.1", "198.19.255.255", "2001:2::1", "::ffff:198.18.0.1"],
  ["multicast", "224.0.0.1", "239.255.255.255", "ff02::1", "ff00::"],
  ["broadcast", "255.255.255.255", "::ffff:255.255.255.255"],
  ["reserved", "240.0.0.1", "255.255.255.254"],
  ["unique local", "fc00::1", "fdff:ffff::1"],
  ["site-local", "fec0::1"],
  ["local translation", "64:ff9b:1::1", "64:ff9b:1:cb00:71:100::"],
  ["6to4 relay", "192.88.99.1"],
  ["discard", "100::1"],
  ["segment routing", "5f00::1"],
];

describe("where a name must not lead", () => {
  for (const [range, ...addresses] of INTERNAL)
    test.each(addresses)(`%s is ${range}`, (address) => {
      expect(internalRange(address)).toBe(range);
    });

  // What inet_aton, a URL or a shell would read as an address, and what is no plain one.
  test.each([
    "0177.0.0.1",
    "0x7f.0.0.1",
    "0x7f000001",
    "2130706433",
    "017700000001",
    "127.1",
    "127.0.1",
    "127.0.0.1.",
    "127.0.0.1:80",
    "127.0.0.256",
    "[::1]",
    "::1%lo",
    "fe80::1%eth0",
    "::ffff:127.0.0.1%1",
    "2001:db8::1%",
    " 127.0.0.1",
    "127.0.0.1\n",
    "127.0.0.1\0",
    "8.8.8.8\0.example",
    "１２７.0.0.1",
    "127。0。0。1",
    "::ffff:0x7f.0.0.1",
    "::ffff:127.1",
    ":::1",
    "1::2::3",
    "localhost",
    "a.example",
    "",
  ])("%j is no address, and so not dialled", (address) => {
    expect(internalRange(address)).toBe("no address");
  });

  test.each([
    "8.8.8.8",
    "1.1.1.1",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "192.31.196.1",
    "168.63.129.15",
    "2606:4700::1111",
    "2a00:1450:4001::1",
    "2001:20::1",
    "2002:0808:0808::1",
    "64:ff9b::8.8.8.8",
    "::ffff:8.8.8.8",
    "2001:0:cb00:7101::f7f7:f7f7",
    "2001:db8::5efe:8.8.8.8",
  ])("%s is dialled", (address) => {
    expect(internalRange(address)).toBeNull();
  });

  test.each(["192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1", "::ffff:203.0.113.1"])(
    "%s is for documentation, where a mirror may live",
    (address) => {
      expect(internalRange(address)).toBeNull();
    },
  );
});

const V4 = { netmask: "255.255.255.0", mac: "00:00:00:00:00:00", cidr: null, family: "IPv4" } as const;
const V6 = { ...V4, family: "IPv6", scopeid: 0 } as const;
const INTERFACES = {
  lo: [
    { ...V4, address: "127.0.0.1", internal: true },
    { ...V4, address: "203.0.113.7", internal: true },
    { ...V6, address: "2001:db8::7", internal: true },
    { ...V4, address: "8.8.4.4", internal: true },
  ],
  eth0: [
    { ...V4, address: "1.2.3.4", internal: false },
    { ...V4, address: "198.51.100.4", internal: false },
    { ...V6, address: "2a00::4", internal: false },
    { ...V6, address: "fe80::4%eth0", internal: false },
  ],
};

afterEach(() => {
  vi.useRealTimers();
});

describe("the host's own addresses", () => {
  test.each([
    "1.2.3.4",
    "198.51.100.4",
    "::ffff:1.2.3.4",
    "2002:102:304::1",
    "2a00::4",
    "2a00:0:0::0004",
    "fe80::4",
    "127.0.0.1",
    "8.8.4.4",
  ])("%s is the host's", (address) => {
    expect(new OwnAddresses(() => INTERFACES).has(address)).toBe(true);
  });

  test.each(["1.2.3.5", "2a00::5", "203.0.113.8", "a.example", ""])("'%s' is not", (address) => {
    expect(new OwnAddresses(() => INTERFACES).has(address)).toBe(false);
  });

  test.each(["203.0.113.7", "2001:db8::7", "::ffff:203.0.113.7"])(
    "%s was put on the loopback interface to be reached",
    (address) => {
      expect(new OwnAddresses(() => INTERFACES).has(address)).toBe(false);
    },
  );

  test("are read again after a second, and not with each question", () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    let [reads, interfaces]: [number, Partial<typeof INTERFACES>] = [0, {}];
    const own = new OwnAddresses(() => {
      reads++;
      return interfaces;
    });
    expect(own.has("1.2.3.4")).toBe(false);
    interfaces = INTERFACES;
    vi.advanceTimersByTime(900);
    expect([own.has("1.2.3.4"), own.has("a.example")]).toEqual([false, false]);
    expect(reads).toBe(1);
    vi.advanceTimersByTime(100);
    expect([own.has("1.2.3.4"), own.has("1.2.3.5"), own.has("203.0.113.7")]).toEqual([true, false, false]);
    expect(reads).toBe(2);
  });

  test("this machine's loopback address is its own", () => {
    expect(new OwnAddresses().has("127.0.0.1")).toBe(true);
  });
});
