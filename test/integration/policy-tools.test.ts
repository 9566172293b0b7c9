import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { skip } from "../support/run/skips.ts";

const POLICY = `id: default
name: Learning
mode: observe
commands:
  # What this team runs.
  allowed:
    - "ls *" # looking
    - "touch *"
    - "mkdir *"
  denied:
    - { pattern: "chmod 777 *", reason: it opens the files to everybody }
  ask: ["git push *"]
`;

const CASE = "command: chmod 777 x\nverdict: deny\nrule: { list: commands.denied, pattern: 'chmod 777 *' }\n";

type Learned = {
  readonly additions: readonly { readonly list: string; readonly value: string }[];
  readonly patch: string;
  readonly checked: { readonly cases: number; readonly learned: number };
  readonly would_lift_a_denial: readonly { readonly command: string }[];
  readonly asks: readonly { readonly command: string }[];
  readonly cannot_be_expressed: readonly { readonly command: string; readonly why: string }[];
  readonly writes_not_proposed: readonly { readonly path: string; readonly kind: string }[];
  readonly skipped: { readonly redacted: number };
};

describe.each(actors())("policy test, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
  });
  afterAll(() => broker.stop());

  test("runs the operator's cases beside the shipped ones of that name, and names what is not kept", async () => {
    broker.write(join(broker.home, "policies/cases/default/DENY/open-up.yaml"), CASE);
    broker.write(
      join(broker.home, "policies/cases/default/ALLOW/look.yaml"),
      "command: ls -l\nverdict: deny\nrule: null\n",
    );
    const { stdout, code } = await broker.cli(["policy", "test", "default"]);
    expect(code).toBe(1);
    // The shipped default denies sudo; this one does not list it, and says so by another rule.
    expect(stdout).toContain("policies/cases/default/DENY/sudo-behind-env.yaml");
    expect(stdout).toMatch(/command +env -i LANG=C sudo apt-get update/);
    expect(stdout).toMatch(/expected +would_deny: 'sudo \*' in commands.denied/);
    expect(stdout).toMatch(
      /received +would_deny: .* in commands.allowed about 'env -i LANG=C sudo apt-get update', default.yaml:6/,
    );
    expect(stdout).toMatch(/look\.yaml:2:1: A case in ALLOW cannot expect 'deny': it belongs in DENY/);
    expect(stdout).not.toContain("open-up.yaml");
  });

  test("exits 0 when all cases are kept, with the number of them", async () => {
    broker.write(join(broker.folder, "cases/DENY/open-up.yaml"), CASE);
    const kept = await broker.cli(["policy", "test", "default", "--cases", join(broker.folder, "cases")]);
    expect(kept).toMatchObject({ stdout: "default: 1 of 1 cases passed\n", code: 0 });
    const strict = await broker.cli(["policy", "test", "strict", "--json"]);
    expect(JSON.parse(strict.stdout)).toMatchObject([{ policy: "strict", failed: [], problems: [] }]);
    expect(strict.code).toBe(0);
  });

  test("a case of what observe would do is kept by what enforce does, and not by anything else", async () => {
    const shipped = readFileSync(join(import.meta.dirname, "../../policies/default.yaml"), "utf8");
    const enforcing = shipped.replace("\nmode: observe", "\nmode: enforce");
    expect(enforcing).not.toBe(shipped);
    const folder = join(broker.folder, "enforced");
    broker.write(join(folder, "default.yaml"), enforcing);
    const cases = join(import.meta.dirname, "../../policies/cases/default");
    const all = await broker.cli(["policy", "test", join(folder, "default.yaml"), "--cases", cases]);
    expect([all.stdout, all.code]).toEqual([expect.stringMatching(/^default: (\d+) of \1 cases passed/), 0]);
    broker.write(
      join(folder, "default.yaml"),
      enforcing
        .replace(/ {4}- pattern: "sudo \*"\n/, '    - pattern: "doas *"\n')
        .replace(/^ +(not_)?match: \[.*sudo.*\]\n/gm, ""),
    );
    const one = await broker.cli(["policy", "test", join(folder, "default.yaml"), "--cases", cases]);
    expect(one.code).toBe(1);
    expect(one.stdout).toContain("sudo-behind-env.yaml");
  });

  test("says that there are no cases instead of that they hold", async () => {
    broker.write(join(broker.project, "mine.yaml"), "id: mine\nname: Mine\n");
    const { stdout, code } = await broker.cli(["policy", "test", "mine.yaml"]);
    expect([stdout, code]).toEqual(["mine: no cases: nothing was tested\n", 0]);
  });

  test("fails for a policy that does not load, a case folder that is not there and a file that is no case", async () => {
    broker.write(
      join(broker.project, "bad.yaml"),
      "id: bad\nname: Bad\ncommands: { denied: [{ pattern: x, match: [y] }] }\n",
    );
    const bad = await broker.cli(["policy", "test", "bad.yaml"]);
    expect(bad.stdout).toMatch(/does not load: bad\.yaml:3:\d+: 'x' must match its own example 'y'/);
    expect(bad.code).toBe(1);
    expect(await broker.cli(["policy", "test", "strict", "--cases", "nowhere"])).toMatchObject({ code: 125 });
    broker.write(join(broker.folder, "odd/DENY/notes.txt"), "not a case");
    const odd = await broker.cli(["policy", "test", "strict", "--cases", join(broker.folder, "odd")]);
    expect(odd.stdout).toContain("odd/DENY/notes.txt: Skipped");
    expect(odd.code).toBe(1);
  });
});

describe.each(actors())("policy learn, as $kind", (actor) => {
  let broker: TestBroker;
  const learn = async (...words: string[]): Promise<Learned> => {
    const { stdout, stderr, code } = await broker.cli(["policy", "learn", "--json", ...words]);
    expect([code, stderr]).toEqual([0, ""]);
    return JSON.parse(stdout) as Learned;
  };
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    broker.write(join(broker.home, "policies/cases/default/DENY/open-up.yaml"), CASE);
    for (const cmd of [
      "echo one",
      "echo one",
      "printf %s x | cat",
      "chmod 777 .",
      "git push",
      "echo $HOME/*",
    ])
      await broker.run({ cmd });
    await broker.run({ cmd: "true > seen", agent_id: "other" });
    await broker.run({ cmd: "echo AKIAIOSFODNN7EXAMPLE ghp_0123456789abcdefghijABCDEFGHIJ012345" });
  });
  afterAll(() => broker.stop());

  test("proposes what was observed word by word, and marks what would lift a denial or asks", async () => {
    const learned = await learn("--agent", "test");
    expect(learned.additions.map(({ list, value }) => `${list} ${value}`)).toEqual([
      "commands.allowed echo one",
      "commands.allowed printf %s x",
      "commands.allowed cat",
    ]);
    expect(learned.would_lift_a_denial).toMatchObject([{ command: "chmod 777 ." }]);
    expect(learned.asks).toMatchObject([{ command: "git push" }]);
    expect(learned.cannot_be_expressed).toMatchObject([{ command: "echo $HOME/*" }]);
    expect(learned.skipped.redacted).toBe(1);
    expect(learned.checked).toMatchObject({ learned: 2, cases: expect.any(Number) });
  });

  test("reads one agent's spans, or those since a time", async () => {
    const others = await learn("--agent", "other");
    expect(others.additions.map(({ value }) => value)).toEqual(["true"]);
    expect((await learn("--since", "2999-01-01T00:00:00Z")).additions).toEqual([]);
    expect((await learn("--since", "1h")).additions.length).toBeGreaterThan(0);
    expect(await broker.cli(["policy", "learn", "--since", "yesterday"])).toMatchObject({
      code: 125,
      stderr: expect.stringContaining("Cannot use 'yesterday' as --since"),
    });
  });

  test("prints a patch with comments that patch(1) applies as it is, and what was run is allowed then, and no more", async () => {
    const { stdout, code } = await broker.cli(["policy", "learn", "--agent", "test"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^# Rules with which policy 'default' would have allowed the \d+ spans recorded under it\./,
    );
    expect(stdout).toMatch(/^\+ {4}- "echo one" # seen 2 times, last \S+, spn_\S+ spn_\S+$/m);
    expect(stdout).toMatch(/^# Denied by a rule, so not in the patch/m);
    expect(stdout).toMatch(
      /^# {3}chmod 777 \.: 'chmod 777 \*' in commands\.denied, default\.yaml:11 \(it opens/m,
    );
    expect(stdout).not.toMatch(/^\+.*chmod/m);
    const file = join(broker.home, "policies/default.yaml");
    const ran = spawnSync("patch", [file], { input: stdout, encoding: "utf8" });
    if (ran.error !== undefined) skip("policy learn's output through patch(1)", ran.error.message);
    expect([ran.status, ran.stderr]).toEqual([0, ""]);
    expect(readFileSync(file, "utf8")).toContain("# What this team runs.\n");
    const verdictOf = async (cmd: string) =>
      (await broker.call("POST", "/v1/check", { agent_id: "test", cwd: broker.project, cmd })).document;
    expect(await verdictOf("echo one")).toMatchObject({ decision: { verdict: "allow" } });
    expect(await verdictOf("printf %s x | cat")).toMatchObject({ decision: { verdict: "allow" } });
    for (const cmd of ["echo two", "echo one two", "cat x", "chmod 777 .", "echo"])
      expect([cmd, await verdictOf(cmd)]).toMatchObject([cmd, { decision: { verdict: "would_deny" } }]);
    expect((await learn("--agent", "test")).additions).toEqual([]);
  });

  test("changes nothing by itself", async () => {
    const file = join(broker.home, "policies/default.yaml");
    const before = readFileSync(file, "utf8");
    await broker.cli(["policy", "learn"]);
    expect(readFileSync(file, "utf8")).toBe(before);
    expect(existsSync(`${file}.rej`)).toBe(false);
  });

  test("works on a trace whose broker is gone", async () => {
    await broker.kill("SIGTERM");
    expect((await learn("--agent", "other")).additions.map(({ value }) => value)).toEqual(["true"]);
  });
});

describe.each(actors())("policy learn about files, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    // Not below /tmp, which is the world's own.
    const options = actor.uid === 0 ? { folder: mkdtempSync(join(actor.home, "sb-")) } : {};
    const policies = { default: "id: default\nname: Files\nmode: observe\n" };
    broker = await TestBroker.start(actor, { ...options, policies });
  });
  afterAll(() => broker.stop());

  test("proposes the very file that a command wrote outside fs.write, and then its writes reach the host", async () => {
    const file = join(broker.folder, "elsewhere/state.json");
    broker.write(file, "old");
    broker.write(join(broker.folder, "elsewhere/other.json"), "old");
    const reply = await broker.run(`echo new > ${file}`);
    expect(reply.stderr).toContain("Read-only file system");
    expect(readFileSync(file, "utf8")).toBe("old");
    const { stdout } = await broker.cli(["policy", "learn"]);
    expect(stdout.match(/^\+ {4}.*$/gm)).toEqual([
      expect.stringMatching(/^\+ {4}- "\$PROJECT\/\*\*"$/),
      expect.stringMatching(/^\+ {4}- "\$HOME\/[^*]*\/elsewhere\/state\.json" # seen once/),
    ]);
    const patched = spawnSync("patch", [join(broker.home, "policies/default.yaml")], { input: stdout });
    if (patched.error !== undefined) skip("policy learn's output through patch(1)", patched.error.message);
    await broker.run(`echo new > ${file}; echo new > ${join(broker.folder, "elsewhere/other.json")}`);
    expect(readFileSync(file, "utf8")).toBe("new\n");
    expect(readFileSync(join(broker.folder, "elsewhere/other.json"), "utf8")).toBe("old");
  });
});
