/** npm with its own settings where its registry is refused: nothing here needs a registry, or leaves the machine. */
import { spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Actor, actors, runAs } from "../support/users/users.ts";
import { eventually, type Ran, TestBroker } from "../support/broker/broker.ts";
import { needs } from "../support/run/needs.ts";

type Policy = { readonly allowed?: readonly string[]; readonly mode?: string; readonly fs?: string };

const policy = ({ allowed = ["other.example"], mode = "enforce", fs = "" }: Policy = {}): string =>
  `id: default
name: Packages
mode: ${mode}
fs: { write: ["$PROJECT/**"]${fs} }
net: { allowed: ${JSON.stringify(allowed)} }
`;

/** Its own cache, because the home is not to be written; its log there has each attempt that failed, with its number. */
const INSTALL = "rm -rf .cache; npm install --no-audit --no-fund --cache .cache is-number";
const ATTEMPTS = "cat .cache/_logs/*.log | grep -o 'is-number attempt . failed with ENOTFOUND' | sort -u";
const RETRIES = "npm config get fetch-retries";

function attemptsIn({ stdout }: Ran): readonly string[] {
  return [...stdout.matchAll(/is-number attempt (\d+) failed/g)].map(([, number = ""]) => number);
}

/** How often npm tries again when nobody has set it, by the host's npm, as that user. */
async function hostRetries(actor: Actor): Promise<string> {
  const { stdout } = await runAs(actor, ["npm", "config", "get", "fetch-retries"], { cwd: "/" });
  return stdout;
}

/**
 * Of a new session each time: what a world is made with stays with it, and until the broker knows what npm is set to it
 * is made without.
 */
let sessions = 0;
async function retriesInside(broker: TestBroker, more: object = {}): Promise<string> {
  sessions += 1;
  return (await broker.run({ agent_id: `npm-${sessions}`, cmd: RETRIES, ...more })).stdout;
}

function isTold(broker: TestBroker, more: object = {}): Promise<boolean> {
  return eventually(async () => (await retriesInside(broker, more)) === "0\n", 20_000);
}

describe.each(actors())("npm whose registry is refused, as $kind,", (actor) => {
  let broker: TestBroker;
  let usual: string;
  beforeAll(async () => {
    usual = await hostRetries(actor);
    broker = await TestBroker.start(actor, { policies: { default: policy() } });
    broker.write(join(broker.project, "package.json"), '{ "name": "a", "version": "1.0.0" }');
  });
  afterAll(() => broker.stop());
  const say = (change: Policy): void =>
    broker.write(join(broker.home, "policies/default.yaml"), policy(change));
  const install = (agent: string, settings = ""): Promise<Ran> =>
    broker.run({
      agent_id: agent,
      cmd: `${settings} ${INSTALL}; code=$?; ${ATTEMPTS}; exit $code`,
      timeout_ms: 50_000,
    });

  test("tries once, fails soon, and its command is told which name and which line of the policy", async () => {
    expect(usual).toMatch(/^[1-9]/);
    expect(await isTold(broker)).toBe(true);
    const ran = await install("once");
    expect(attemptsIn(ran)).toEqual(["1"]);
    expect(ran.exit).not.toBe(0);
    expect(ran.stderr).toContain("ENOTFOUND");
    expect(ran.stderr).toMatch(
      /substrate: The name '[^']+' was not looked up \(A+\): net\.allowed \(default\.yaml:5\) does not allow it/,
    );
    process.stdout.write(`npm install without its name failed after ${Math.round(ran.duration_ms)} ms\n`);
  });

  test("does what anybody has set: a project, a user, a variable", async () => {
    const quick = "fetch-retries=1\nfetch-retry-mintimeout=10\nfetch-retry-maxtimeout=10\n";
    broker.write(join(broker.project, "own.rc"), quick);
    const byUser = await install("user", "export npm_config_userconfig=$PWD/own.rc;");
    expect(attemptsIn(byUser)).toEqual(["1", "2"]);
    broker.write(join(broker.project, ".npmrc"), quick);
    const byProject = await install("project");
    expect(attemptsIn(byProject)).toEqual(["1", "2"]);
    rmSync(join(broker.project, ".npmrc"));
    const variable = { env: { npm_config_fetch_retries: "4" } };
    expect(await retriesInside(broker, variable)).toBe("4\n");
    expect(await retriesInside(broker)).toBe("0\n");
  });

  test("keeps its own settings where it is allowed, or only observed; an edit holds for the next command", async () => {
    const inSession = async (): Promise<string> =>
      (await broker.run({ agent_id: "edited", cmd: RETRIES })).stdout;
    expect(await inSession()).toBe("0\n");
    say({ allowed: ["@npm"] });
    expect(await inSession()).toBe(usual);
    say({});
    expect(await inSession()).toBe("0\n");
    say({ mode: "observe" });
    expect(await inSession()).toBe(usual);
    say({});
    expect(await inSession()).toBe("0\n");
  });

  test("loses nothing of its world by an edit that leaves its registry refused", async () => {
    const run = (cmd: string): Promise<Ran> => broker.run({ agent_id: "kept", cmd });
    const first = await run("echo here > /tmp/note");
    say({ allowed: ["other.example", "more.example"] });
    const after = await run(`cat /tmp/note; ${RETRIES}`);
    expect(after.stdout).toBe("here\n0\n");
    expect(after.world_id).toBe(first.world_id);
  });

  test("in a world of one command alone, too", async () => {
    broker.write(
      join(broker.home, "policies/default.yaml"),
      `${policy()}commands: { isolated: ["npm install *"] }\n`,
    );
    const ran = await install("alone");
    expect(ran.decision.verdict).toBe("isolate");
    expect(ran.exit).not.toBe(0);
    expect(attemptsIn(ran)).toEqual(["1"]);
    say({});
  });
});

describe.each(actors())("npm that lies in a home, as $kind,", (actor) => {
  let folder: string;
  let npm: string;
  let broker: TestBroker | undefined;
  beforeEach(() => {
    folder = mkdtempSync(join(actor.home, "sb-npm-"));
    npm = join(folder, "lib/node_modules/npm");
    mkdirSync(join(folder, "bin"), { recursive: true });
    cpSync(hostNpm(), npm, { recursive: true });
    rmSync(join(npm, "npmrc"), { force: true });
    symlinkSync("../lib/node_modules/npm/bin/npm-cli.js", join(folder, "bin/npm"));
    own();
  });
  afterEach(async () => {
    await broker?.stop();
    broker = undefined;
    rmSync(folder, { recursive: true, force: true });
  });
  const own = (): void => void spawnSync("chown", ["-R", `${actor.uid}:${actor.gid}`, folder]);
  const start = async (fs = ""): Promise<TestBroker> => {
    const path = [join(folder, "bin"), dirname(process.execPath), "/usr/local/bin", "/usr/bin", "/bin"];
    const environment = { PATH: path.join(":") };
    broker = await TestBroker.start(actor, { policies: { default: policy({ fs }) }, environment });
    return broker;
  };

  test("is told without a file on the host", async () => {
    needs("python3");
    const here = await start();
    expect(await isTold(here)).toBe(true);
    const listed = await here.run({
      agent_id: "list",
      cmd: `ls ${npm}; python3 -c 'open("${npm}/npmrc", "a")'`,
    });
    expect(listed.stdout).toMatch(/^npmrc$/m);
    expect(listed.stderr).toMatch(/Read-only file system|Permission denied/);
    expect(existsSync(join(npm, "npmrc"))).toBe(false);
  });

  test("keeps what the host's own file says", async () => {
    writeFileSync(join(npm, "npmrc"), "fetch-retries=7\ninit-author-name=ann\n");
    own();
    const here = await start();
    const isThere = async (): Promise<boolean> =>
      (await here.run({ agent_id: `own-${Math.random()}`, cmd: `cat ${npm}/npmrc` })).stdout.includes(
        "From substrate",
      );
    expect(await eventually(isThere, 20_000)).toBe(true);
    expect(await retriesInside(here)).toBe("7\n");
    const name = await here.run({ agent_id: "name", cmd: "npm config get init-author-name" });
    expect(name.stdout).toBe("ann\n");
  });

  test.each([
    ["by its path", () => `${npm}/npmrc`],
    ["by a pattern", () => `${actor.home}/**/npmrc`],
  ])("shows no file that the policy denies %s", async (_how, denied) => {
    writeFileSync(join(npm, "npmrc"), "init-author-name=ann\n");
    own();
    const here = await start(`, deny_read: ["${denied()}"]`);
    // Under the other policy npm is asked first, so that by then it has answered.
    const file = join(here.home, "policies/default.yaml");
    here.write(file, policy({ allowed: ["@npm"] }));
    expect((await here.run(`cat ${npm}/npmrc`)).stdout).toContain("ann");
    here.write(file, policy());
    expect(await isTold(here)).toBe(true);
    here.write(file, policy({ fs: `, deny_read: ["${denied()}"]` }));
    const ran = await here.run({ agent_id: "denied", cmd: `cat ${npm}/npmrc; ${RETRIES}` });
    expect(ran.stderr).toContain("No such file");
    expect(ran.stdout).toBe(await hostRetries(actor));
  });
});

/** The package of the npm that runs the suite's installs. */
function hostNpm(): string {
  const found = spawnSync("sh", ["-c", "command -v npm"], { encoding: "utf8" }).stdout.trim();
  return dirname(dirname(realpathSync(found)));
}
