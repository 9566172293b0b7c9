import { isRefusal } from "../../broker/model/refusal.ts";
import { describe, expect, test } from "vitest";
import { withGrants } from "../../broker/network/reach.ts";
import { type NetRules, netRules } from "../../broker/network/rules.ts";
import { parsePolicy } from "../../broker/policy/index.ts";
import type { NetScope } from "../../broker/model/scope.ts";
import { netEntry, netNotes, netText, readNetScope } from "../../broker/scopes/net-scope.ts";
import { lacksNetwork } from "../../broker/scopes/use-scopes.ts";
import { isNetGiven, netNeverGranted } from "../../broker/scopes/refuse-net-scope.ts";

describe("the text of a scope of the network", () => {
  test.each([
    ["net:a.example:443", "net:a.example:443", []],
    ["net:A.Example.:443", "net:a.example:443", ["'net:A.Example.:443' is 'net:a.example:443'"]],
    [
      "net:bücher.example:80",
      "net:xn--bcher-kva.example:80",
      [expect.stringContaining("'net:xn--bcher-kva")],
    ],
    ["net:203.0.113.5:22", "net:203.0.113.5:22", []],
    ["net:203.0.113.0/24:5432", "net:203.0.113.0/24:5432", ["Each of 256 addresses"]],
    [
      "net:203.0.113.7/31:1",
      "net:203.0.113.6/31:1",
      [expect.stringContaining(" is "), "Each of 2 addresses"],
    ],
    ["net:[::ffff:203.0.113.5]:1", "net:203.0.113.5:1", [expect.stringContaining("'net:203.0.113.5:1'")]],
  ])("%s is shown as %s", (asked, text, notes) => {
    const scope = net(asked);
    expect([netText(scope), netNotes(scope)]).toEqual([text, notes]);
  });
});

describe("what no grant of the network gives", () => {
  function policy(allowed: readonly string[]): NetRules {
    const loaded = parsePolicy(`id: p\nname: P\nnet: { allowed: ${JSON.stringify(allowed)} }\n`, "p.yaml");
    if (!("ok" in loaded)) throw new Error("The policy does not load");
    return netRules([{ net: loaded.ok.net, presets: new Map() }]);
  }
  const closed = (asked: string, allowed: readonly string[] = []): boolean =>
    netNeverGranted(net(asked), policy(allowed)) !== undefined;

  test.each([
    "net:localhost:80",
    "net:a.LOCALHOST.:80",
    "net:host.internal:5432",
    "net:127.0.0.1:80",
    "net:169.254.169.254:80",
    "net:10.1.2.3:443",
    "net:[::ffff:10.1.2.3]:443",
    "net:198.18.0.1:443",
    "net:0.0.0.0/0:443",
    "net:8.0.0.0/6:443",
    "net:100.0.0.0/8:443",
    "net:192.168.0.0/15:443",
  ])("%s is internal, or holds what is", (asked) => {
    expect(closed(asked)).toBe(true);
  });

  test("outside names and addresses may be asked for, and internal ones that a CIDR entry covers", () => {
    for (const asked of ["net:a.example:1", "net:8.8.8.8:53", "net:8.0.0.0/7:53", "net:internal:80"])
      expect(closed(asked), asked).toBe(false);
    expect(closed("net:10.1.2.3:5432", ["10.0.0.0/8"])).toBe(false);
    expect(closed("net:10.1.0.0/16:5432", ["10.0.0.0/8"])).toBe(false);
    expect(closed("net:10.0.0.0/7:5432", ["10.0.0.0/8"])).toBe(true);
    expect(closed("net:10.1.2.3:5432", ["10.0.0.0/8:443"])).toBe(true);
    expect(closed("net:host.internal:5432", ["host.internal:5432"])).toBe(false);
    expect(closed("net:host.internal:5433", ["host.internal:5432"])).toBe(true);
  });

  test("what the policy gives already is known by name, port and range", () => {
    const rules = policy(["a.example", "*.b.example:8080", "203.0.113.0/24"]);
    const given = (asked: string): boolean => isNetGiven(net(asked), rules);
    for (const asked of ["net:a.example:443", "net:x.b.example:8080", "net:203.0.113.0/25:22"])
      expect(given(asked), asked).toBe(true);
    for (const asked of [
      "net:a.example:8080",
      "net:b.example:8080",
      "net:203.0.113.0/23:22",
      "net:203.0.113.1:1",
    ])
      expect(given(asked), asked).toBe(false);
  });

  test("a grant adds names, addresses and ports to rules, and covers no internal address", () => {
    const rules = withGrants(policy(["a.example"]), [
      netEntry(net("net:b.example:8080")),
      netEntry(net("net:8.0.0.0/8:53")),
    ]);
    expect([rules.portsOf("a.example"), rules.portsOf("b.example"), rules.ports]).toEqual([
      [22, 80, 443],
      [8080],
      [22, 80, 443, 8080],
    ]);
    expect(rules.connection("b.example", 8080).allowed).toBe(true);
    expect(rules.connection("b.example", 443).allowed).toBe(false);
    expect(rules.connection("a.example", 8080).allowed).toBe(false);
    expect(rules.address("8.8.8.8", 53).allowed).toBe(true);
    expect(rules.covers("8.8.8.8", 53)).toBe(false);
    expect(rules.name("c.example")).toEqual({ allowed: false, entry: null, source: "p.yaml:3" });
  });
});

describe("a world without a network", () => {
  const texts = ["fs.read:/srv", "net:a.example:443"];
  const world = { network: null, isolation: { net: "degraded: no host can be reached: why" } };

  test("gives no scope of the network, and says why", () => {
    const scopes = [{ kind: "fs.read" }, { kind: "net" }] as const;
    expect(lacksNetwork({ scopes, texts }, world)).toMatchObject({
      code: "isolation_unavailable",
      message: expect.stringMatching(/'net:a\.example:443' here: .*'degraded: no host can be reached: why'/),
    });
  });

  test("gives those of files", () =>
    expect(lacksNetwork({ scopes: [{ kind: "fs.read" }], texts }, world)).toBeUndefined());
});

function net(asked: string): NetScope {
  const scope = readNetScope(asked);
  if (isRefusal(scope)) throw new Error(`'${asked}' is no scope of the network`);
  return scope;
}
