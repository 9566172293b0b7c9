import { describe, expect, test } from "vitest";
import { isRefusal } from "../../../../broker/model/refusal.ts";
import type { NetScope, PlacedScope } from "../../../../broker/model/scope.ts";
import { withGrants } from "../../../../broker/network/reach.ts";
import { type NetRules, netRules } from "../../../../broker/network/rules.ts";
import { parsePolicy } from "../../../../broker/policy/index.ts";
import { netEntry, netNotes, netText, readNetScope } from "../../../../broker/scopes/net-scope.ts";
import { readScope } from "../../../../broker/scopes/read-scope.ts";
import { isNetGiven, netNeverGranted } from "../../../../broker/scopes/refuse-net-scope.ts";
import { neverGranted } from "../../../../broker/scopes/refuse-scope.ts";
import { type ScopeGrant, ScopeTokens } from "../../../../broker/scopes/tokens.ts";
import { lacksNetwork, widened } from "../../../../broker/scopes/use-scopes.ts";
import type { WorldSpec } from "../../../../world/backend.ts";

const NET: NetScope = {
  kind: "net",
  asked: "net:A:1",
  opens: { kind: "name", name: "a", ports: [1] },
  port: 1,
};
const FOLDERS = { project: "/home/ann/shop", home: "/home/ann" };

describe("the text of a scope", () => {
  test.each([
    ["fs.read:/srv/data", "fs.read", "/srv/data", false],
    ["fs.write:/srv//data/./x/", "fs.write", "/srv/data/x", false],
    ["fs.write:/srv/**", "fs.write", "/srv", true],
    ["fs.read:/**", "fs.read", "/", true],
    ["fs.write:~/.cache/pip/**", "fs.write", "/home/ann/.cache/pip", true],
    ["fs.write:$HOME", "fs.write", "/home/ann", false],
    ["fs.write:$PROJECT/a b", "fs.write", "/home/ann/shop/a b", false],
    ["fs.write:${PROJECT}/x", "fs.write", "/home/ann/shop/x", false],
    ["fs.read:/srv/$HOME", "fs.read", "/srv/$HOME", false],
  ])("%s is %s of %s", (asked, kind, path, below) => {
    expect(readScope(asked, FOLDERS)).toEqual({ asked, kind, path, below });
  });

  test.each([
    "fs.write:relative",
    "fs.write:./x",
    "fs.write:~ann/x",
    "fs.write:$HOMES/x",
    "fs.write:/a/*/b",
    "fs.read:/a*",
    "fs.read:/a\nb",
    "fs.read:/a\u202eb",
    "net:host",
    "net:host:port",
    "net::443",
    "net:host:0",
    "net:host:65536",
    "net:host:443,80",
    "net:*:443",
    "net:@npm:443",
    "net:a b:443",
    "net:a.example%2eb.example:443",
    "net:https://a.example:443",
    "net:user@a.example:443",
    "net:a..example:443",
    "net:0x7f.1:443",
    "net:017700000001:443",
    "net:::1:443",
    "net:10.0.0.0/33:443",
  ])("%j cannot be read", (asked) => {
    expect(readScope(asked, FOLDERS)).toMatchObject({ code: "invalid_request" });
  });

  test.each([
    "fs.write:/srv/../etc",
    "fs.read:$PROJECT/..",
    "fs.write:~/../bob/**",
    "net:*.a.example:443",
    "net:[2001:db8::1]:443",
  ])("%s is never granted", (asked) => {
    expect(readScope(asked, FOLDERS)).toMatchObject({ code: "scope_denied" });
  });
});

describe("what no grant gives", () => {
  const rules = {
    home: "/home/ann",
    hidden: ["/home/ann/.substrate"],
    uid: 1000,
    installation: "/opt/substrate",
    roots: [],
  };
  const refused = (path: string, kind: PlacedScope["kind"], denied: readonly string[] = []): boolean =>
    neverGranted(placed(path, kind), specWith(denied), { read: ["/srv/led-to"], write: [] }, rules) !==
    undefined;

  test("a pattern of the deny list covers what it names, all below it, and in doubt more", () => {
    expect(refused("/srv/a", "fs.read", ["/srv/b"])).toBe(false);
    for (const pattern of ["/srv", "/srv/a", "/**/a", "/s?v/*", "/srv/[a-c]", "/srv/[!a]", "/srv/{a,b}"])
      expect(refused("/srv/a", "fs.read", [pattern]), pattern).toBe(true);
    expect(refused("/srv/ab", "fs.read", ["/srv/a"])).toBe(false);
    expect(refused("/srv/led-to/x", "fs.read")).toBe(true);
  });

  test("a settings folder is not written as a whole, a folder in it may be asked for", () => {
    expect(refused("/home/ann/.config", "fs.write")).toBe(true);
    expect(refused("/home/ann/.bashrc", "fs.write")).toBe(true);
    expect(refused("/home/ann/.cache/pip", "fs.write")).toBe(false);
    expect(refused("/home/ann/.config", "fs.read")).toBe(false);
  });
});

describe("widened policies", () => {
  test("have the scopes in their lists, the deny lists as they were, and another hash", () => {
    const policy = parsePolicy("id: p\nname: P\nfs:\n  write: [$PROJECT/a]\n  deny_write: [/x]\n", "p.yaml");
    if (!("ok" in policy)) throw new Error("The policy does not load");
    const before = { policies: [policy.ok] as const, id: "p", hash: "sha256:p", commit: null };
    const after = widened(before, [placed("/srv/a", "fs.write"), placed("/srv/b", "fs.read"), NET]);
    expect(after.policies[0].document.fs).toEqual({
      read: ["/**", "/srv/b/**"],
      write: ["$PROJECT/a", "/srv/a/**"],
      deny_write: ["/x"],
    });
    expect(after.hash).not.toBe(before.hash);
    expect(after.beyond?.policyHash).toBe(before.hash);
    expect(after.beyond?.net.map(({ written }) => written)).toEqual(["net:a:1"]);
    expect(policy.ok.document.fs?.write).toEqual(["$PROJECT/a"]);
  });
});

describe("tokens", () => {
  test("are 256 bits of which no two are the same, and one for one command is taken once", () => {
    const tokens = new ScopeTokens(isLabel);
    const made = Array.from({ length: 50 }, () => tokens.issue(grant("once"), 60_000));
    expect(new Set(made).size).toBe(50);
    for (const token of made) {
      expect(Buffer.from(token.slice(4), "base64url")).toHaveLength(32);
      expect(tokens.take(token)?.grant.agent).toBe("ann");
      expect(tokens.take(token)).toBeUndefined();
    }
  });

  test("given back works once more; one for the session is not used up", () => {
    const tokens = new ScopeTokens(isLabel);
    const [once, session] = [tokens.issue(grant("once"), 60_000), tokens.issue(grant("session"), 60_000)];
    tokens.take(once)?.giveBack();
    expect([tokens.take(once), tokens.take(once)].map((each) => each !== undefined)).toEqual([true, false]);
    expect([tokens.take(session), tokens.take(session)]).not.toContain(undefined);
  });

  test("of one agent do not push out those of another", () => {
    const tokens = new ScopeTokens(isLabel);
    const kept = tokens.issue(grant("session", "bob"), 60_000);
    const flood = Array.from({ length: 500 }, () => tokens.issue(grant("session"), 60_000));
    expect(tokens.find(kept)?.agent).toBe("bob");
    expect(flood.filter((token) => tokens.find(token) !== undefined)).toHaveLength(64);
  });

  test("of however many labels do not push out those of an agent with a socket", () => {
    const tokens = new ScopeTokens(isLabel);
    const kept = tokens.issue(grant("once", "bob"), 60_000);
    const flood = Array.from({ length: 1100 }, (_unused, number) =>
      tokens.issue(grant("policy", `label-${number}`), 60_000),
    );
    expect(tokens.find(kept)?.agent).toBe("bob");
    expect(flood.filter((token) => tokens.find(token) !== undefined)).toHaveLength(1024);
    expect(tokens.find(flood.at(-1) ?? "")).toBeDefined();
  });
});

function isLabel(agent: string): boolean {
  return agent !== "bob";
}

function placed(path: string, kind: PlacedScope["kind"]): PlacedScope {
  const named = { asked: `${kind}:${path}`, kind, path, below: false };
  return { named, kind, path, type: "folder", identity: "folder:1:2", owner: 1000 };
}

function grant(how: ScopeGrant["how"], agent = "ann"): ScopeGrant {
  const [project, policyHash] = ["/home/ann/shop", "sha256:p"];
  return { agent, project, identity: "1:1", policyHash, policies: [], scopes: [], how, approval: null };
}

function specWith(denyRead: readonly string[]): WorldSpec {
  return {
    project: FOLDERS.project,
    identity: "1:1",
    access: { kind: "direct" },
    files: { read: ["/**"], denyRead, write: [], denyWrite: [], seal: [] },
    hidden: [],
    sealed: ["/opt/substrate"],
    limits: {},
    seccomp: "enforce",
    network: { ports: [], ranges: [] },
  };
}

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
