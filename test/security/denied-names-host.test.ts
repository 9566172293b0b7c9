import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { eventually, type Ran, TestBroker } from "../support/broker/broker.ts";
import { hostGit } from "../support/git/git.ts";
import { buildProgram } from "../support/programs/programs.ts";
import { MAKE_BY_CALL, SWAP_NAMES } from "../support/programs/denied-names.ts";

/** The shipped policy, with a name that cannot be read, and on hosts without nft too: files do not depend on the network. */
const POLICY = `
id: default
name: Default
extends: claude-code
fs: { deny_read: ["**/.env"] }
world: { require: !only [mount, pid, seccomp, no_new_privs] }
`;

/** What the branch brings, each denied: two folders, and two files. */
const BROUGHT = [".vscode/tasks.json", ".husky/pre-commit", ".mcp.json", "app/.env"];

describe.each(actors())("denied names beside a kept process, as $kind", (actor) => {
  let broker: TestBroker;
  const at = (name: string): string => join(broker.project, name);
  const git = (...words: readonly string[]): string => hostGit(actor, broker.project, ...words);

  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    git("init", "-q", "-b", "main");
    broker.write(at("README.md"), "one\n");
    git("add", "-A");
    git("commit", "-q", "-m", "one");
    git("checkout", "-q", "-b", "feat");
    for (const name of BROUGHT) broker.write(at(name), `made by a person: ${name}\n`);
    for (let n = 0; n < 200; n += 1) broker.write(at(`src/${n}/file`), String(n));
    git("add", "-A", "-f");
    git("commit", "-q", "-m", "two");
    git("checkout", "-q", "main");
    buildProgram(broker, "make-by-call", MAKE_BY_CALL);
    buildProgram(broker, "swap-names", SWAP_NAMES);
  });
  afterAll(() => broker.stop());
  afterEach(async () => {
    const restart = { agent_id: "test", cwd: broker.project, force: true };
    await broker.operator("POST", "/v1/world/restart", restart);
    git("checkout", "-q", "-f", "main");
  });

  const keep = (cmd: string): Promise<Ran> => broker.run({ cmd: `(${cmd}) & true`, background: "keep" });
  const quarantined = (): readonly string[] => {
    const quarantine = join(broker.home, "quarantine");
    if (!existsSync(quarantine)) return [];
    return readdirSync(quarantine).flatMap((id) => readdirSync(join(quarantine, id)));
  };
  const told = (): readonly unknown[] =>
    broker.spans().filter((span) => span.violation?.kind === "denied_name");

  test.each([
    ["sleeps", "touch ready; exec sleep 60"],
    ["computes", "touch ready; while :; do :; done"],
    [
      "wrote a moment ago",
      "for i in 1 2 3 4 5; do echo tick >> log; mkdir -p made; done; touch ready; exec sleep 60",
    ],
  ])("that a person's git brings stay where they are, while a server %s", async (_does, server) => {
    const before = [quarantined().length, told().length];
    await keep(server);
    expect(await eventually(() => existsSync(at("ready")), 10_000)).toBe(true);
    await sleep(300);
    git("checkout", "-q", "feat");
    expect(git("status", "--porcelain", "--untracked-files=no")).toBe("");
    const inside = await broker.run(
      "cat app/.env; echo x > .mcp.json; echo x > .vscode/tasks.json; echo x > .husky/new; mv .vscode v; rm -rf .husky; cat .vscode/tasks.json; true",
    );
    expect(inside.notices.map(({ kind }) => kind)).not.toContain("quarantined");
    expect(inside.stdout).toBe(`made by a person: .vscode/tasks.json\n`);
    for (const name of BROUGHT)
      expect(readFileSync(at(name), "utf8"), name).toBe(`made by a person: ${name}\n`);
    expect([quarantined().length, told().length]).toEqual(before);
    git("checkout", "-q", "main");
    expect(BROUGHT.filter((name) => existsSync(at(name)))).toEqual([]);
    rmSync(at("ready"));
  });

  test("that a command makes with the same words are taken out", async () => {
    const ran = await broker.run(
      "mkdir .vscode .husky app; echo x > .vscode/tasks.json; echo x > .husky/pre-commit; echo x > .mcp.json; echo x > app/.env; true",
    );
    expect(BROUGHT.filter((name) => existsSync(at(name)))).toEqual([]);
    expect(quarantined()).toEqual(expect.arrayContaining([".vscode", ".husky", ".mcp.json", ".env"]));
    const notices = ran.notices.filter(({ kind }) => kind === "quarantined");
    expect(notices).toHaveLength(4);
    for (const { message, span_id } of notices) {
      const place = /it was moved to '([^']*)'/.exec(message)?.[1] ?? "";
      expect(place.startsWith(join(broker.home, "quarantine")), message).toBe(true);
      expect(existsSync(place)).toBe(true);
      expect((await broker.span(span_id)).parent_span).toBe(ran.span_id);
    }
  });

  const ways: readonly (readonly [string, string])[] = [
    ["a redirect", "echo x > .mcp.json"],
    ["a folder", "mkdir .vscode"],
    ["a rename of a whole tree", "mkdir -p tree/in; echo x > tree/in/.env; mv tree app"],
    ["a rename from where it is not denied", "mkdir -p free; echo x > free/.mcp.json; mv free/.mcp.json ."],
    ["a hard link", "echo x > plain; ln plain .mcp.json"],
    ["a symbolic link", "ln -s README.md .mcp.json"],
    ["a FIFO", "mkfifo .mcp.json"],
    ["a socket", "./make-by-call bind .mcp.json"],
    ["an exchange", "echo x > other; ./make-by-call exchange other .mcp.json"],
    ["a file without a name that gets one", "./make-by-call tmpfile .mcp.json"],
    ["a descriptor of its folder", "./make-by-call openat . .mcp.json"],
    ["a folder behind a link", "mkdir -p app; ln -sfn app link; echo x > link/.env"],
    ["a program that nobody may look into", "./make-by-call undumpable .mcp.json"],
    ["another path to the same folder", "echo x > /proc/self/cwd/.mcp.json"],
  ];
  test.each(ways)("that a kept process makes by %s are taken out at once", async (_way, make) => {
    const before = told().length;
    await keep(`sleep 0.1; ${make}; exec sleep 60`);
    expect(await eventually(() => told().length > before, 5000)).toBe(true);
    await sleep(50);
    expect([".mcp.json", ".vscode", "app/.env"].filter((name) => isThere(at(name)))).toEqual([]);
    rmSync(at("app"), { recursive: true, force: true });
  });

  test("that a process makes by changing the path after PID 1 has read it are taken out", async () => {
    const before = quarantined().filter((name) => name === ".mcp.json").length;
    await broker.run("timeout 2 ./swap-names harmless .mcp.json; true");
    await broker.run("true");
    expect(isThere(at(".mcp.json"))).toBe(false);
    expect(quarantined().filter((name) => name === ".mcp.json").length).toBeGreaterThan(before);
  });

  test("that another world of the same project makes are taken out by that world", async () => {
    await keep("exec sleep 60");
    await sleep(50);
    const other = { agent_id: "other", cmd: "echo x > .mcp.json; mkdir .vscode; true" };
    await broker.run(other);
    expect([".mcp.json", ".vscode"].filter((name) => isThere(at(name)))).toEqual([]);
    mkdirSync(at("mine"), { recursive: true });
    expect(existsSync(at("mine"))).toBe(true);
  });
});

function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}
