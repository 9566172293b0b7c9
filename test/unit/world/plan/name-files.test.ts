import { describe, expect, test } from "vitest";
import { nameFiles } from "../../../../world/plan/name-files.ts";
import { host, spec } from "../../../support/world/planned.ts";

const OWN = "127.0.0.1 localhost\n127.0.0.1 here\n::1 localhost\n::1 ip6-localhost ip6-loopback\n";

function hostsOf(hostsFile: string, files: Partial<ReturnType<typeof spec>["files"]> = {}): string {
  const asked = spec({ files: { ...spec().files, ...files } });
  const found = nameFiles(asked, { ...host(), hostsFile }).find(
    (operation) => operation.op === "text" && operation.target === "/etc/hosts",
  );
  return found?.op === "text" ? found.text : "";
}

describe("a world's hosts file", () => {
  test("has the names that the host gives a loopback address, and no other address", () => {
    const text = [
      "127.0.0.1 localhost here",
      "127.0.1.1\there.lan  here",
      "::1 localhost ip6-localhost six.test",
      "127.0.0.1 shop.test api.shop.test # of the shop",
      "127.0.0.1 shop.test",
      "# 127.0.0.1 not.test",
      "10.0.0.7 printer.test",
      "127.0.0.1.evil.test evil.test",
      "fe80::1 link.test",
      "0.0.0.0 blocked.test",
      "127.0.0.1 ba;d 198.18.0.9\u0000 $(x)",
    ].join("\n");
    expect(hostsOf(text)).toBe(
      `127.0.0.1 localhost here
127.0.1.1 here.lan here
::1 localhost ip6-localhost six.test
127.0.0.1 shop.test api.shop.test
127.0.0.1 shop.test
`,
    );
  });

  test("calls ::1 localhost only where the host does: Node serves the first address of that name", () => {
    expect(hostsOf("127.0.0.1 localhost\n::1 ip6-localhost\n# ::1 localhost\n")).toBe(
      "127.0.0.1 localhost\n::1 ip6-localhost\n127.0.0.1 here\n",
    );
    expect(hostsOf("127.0.0.1 localhost\n::1\tip6-localhost localhost # both\n")).toBe(
      "127.0.0.1 localhost\n::1 ip6-localhost localhost\n127.0.0.1 here\n",
    );
  });

  test("keeps the host's full name, and gives its own where the file has none, or an address that is no loopback", () => {
    expect(hostsOf("127.0.0.1 localhost\n127.0.1.1 here.lan here\n")).toBe(
      "127.0.0.1 localhost\n127.0.1.1 here.lan here\n::1 ip6-localhost ip6-loopback\n",
    );
    expect(hostsOf("10.0.0.7 here.lan here\n")).toBe(
      "127.0.0.1 localhost\n127.0.0.1 here.lan here\n::1 ip6-localhost ip6-loopback\n",
    );
    expect(hostsOf("10.0.0.7 other.lan\n")).toBe(
      "127.0.0.1 localhost\n127.0.0.1 here\n::1 ip6-localhost ip6-loopback\n",
    );
  });

  test("keeps the host's names from a world that may not read the host's file", () => {
    const text = "127.0.0.1 shop.test\n::1 localhost\n";
    expect(hostsOf(text, { denyRead: ["/etc/hosts"] })).toBe(OWN);
    expect(hostsOf(text, { read: ["/usr/**"] })).toBe(OWN);
    expect(hostsOf(text, { read: ["/usr/**", "/etc/hosts"] })).toContain("shop.test");
  });

  test("stays short where the host blocks a hundred thousand names", () => {
    const text = Array.from({ length: 100_000 }, (_, at) => `127.0.0.1 ad${at}.test`).join("\n");
    expect(hostsOf(text).split("\n").length).toBeLessThan(1010);
    const long = `127.0.0.1 ${text
      .split("\n")
      .map((line) => line.slice(10))
      .join(" ")}\n`;
    expect(hostsOf(long).length).toBeLessThan(20_000);
    expect(hostsOf(`${text}\n127.0.1.1 here.lan here\n::1 localhost\n`)).toContain(
      "127.0.1.1 here.lan here\n::1 localhost\n",
    );
  });
});
