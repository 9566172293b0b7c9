import { describe, expect, test } from "vitest";
import type { NetScope, PlacedScope } from "../../broker/model/scope.ts";
import { readScope } from "../../broker/scopes/read-scope.ts";
import { neverGranted } from "../../broker/scopes/refuse-scope.ts";
import { type ScopeGrant, ScopeTokens } from "../../broker/scopes/tokens.ts";
import { widened } from "../../broker/scopes/use-scopes.ts";
import { parsePolicy } from "../../broker/policy/index.ts";
import type { WorldSpec } from "../../world/backend.ts";

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
