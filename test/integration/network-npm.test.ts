import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { skip } from "../support/run/skips.ts";

const PACKAGE = "is-number";
/** npm waits 10 s before it tries a first time again, and its start alone took 4 s beside other tests. */
const REFUSED_WITHIN_MS = 8000;

const policy = (allowed: readonly string[]): string => `id: default
name: Packages
mode: enforce
fs: { write: ["$PROJECT/**"] }
net: { allowed: ${JSON.stringify(allowed)} }
`;

/** Its own cache, because the home is not to be written. How often npm tries is left to it: network-npm-refused.test.ts. */
const INSTALL = `npm install --no-audit --no-fund --cache .cache ${PACKAGE}`;

/** What this host's programs trust beyond their own lists: a registry may be a mirror with an authority of its own. */
const TRUST = Object.fromEntries(
  ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"].flatMap((name) => {
    const path = process.env[name];
    return path === undefined || path === "" ? [] : [[name, path] as const];
  }),
);

/** Whether this host can reach the registry that npm is set to at all; why not, otherwise. */
function unreachable(): string | undefined {
  const { status, stderr } = spawnSync("npm", ["view", PACKAGE, "version", "--fetch-retries=0"], {
    encoding: "utf8",
    timeout: 60_000,
  });
  return status === 0 ? undefined : `npm on this host: ${stderr.slice(0, 200)}`;
}

describe.each(actors())("npm install of a real package, as $kind", (actor) => {
  let broker: TestBroker;
  const why = unreachable();
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: policy(["@npm"]) } });
    broker.write(join(broker.project, "package.json"), '{ "name": "a", "version": "1.0.0" }');
  });
  afterAll(() => broker.stop());

  test("works with net.allowed: [@npm] alone, and says what it reached", async () => {
    if (why !== undefined) skip("npm install from the registry", why);
    const cmd = `${INSTALL} && ls node_modules`;
    const ran = await broker.run({ cmd, env: TRUST, timeout_ms: 100_000 });
    expect(ran, ran.stderr).toMatchObject({ exit: 0 });
    expect(ran.stdout).toContain(PACKAGE);
    expect(ran.scopes_used.some((scope) => /^net:[^:]+:\d+$/.test(scope))).toBe(true);
    expect(ran.usage.ingress_bytes).toBeGreaterThan(1000);
    expect(ran.usage.egress_bytes).toBeGreaterThan(100);
  });

  test("fails without it, and says which name and which line of the policy", async () => {
    broker.write(join(broker.home, "policies/default.yaml"), policy(["other.example"]));
    const ran = await broker.run({ cmd: `rm -rf node_modules .cache; ${INSTALL}`, timeout_ms: 100_000 });
    expect(ran.exit).not.toBe(0);
    expect(ran.stderr).toMatch(
      /substrate: The name '[^']+' was not looked up \(A+\): net\.allowed \(default\.yaml:5\) does not allow it/,
    );
    expect(ran.usage.egress_bytes).toBe(0);
    expect(ran.duration_ms).toBeLessThan(REFUSED_WITHIN_MS);
    process.stdout.write(`npm without its name failed after ${Math.round(ran.duration_ms)} ms\n`);
  });
});
