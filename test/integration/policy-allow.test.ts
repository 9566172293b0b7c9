/** `substrate policy allow`, as a person uses it: the line, the question, the file, and what the next command may do. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Ended, runAtTerminal, type Typing, whenShown } from "../support/programs/at-terminal.ts";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { HomeFolder } from "../support/users/folders.ts";
import { installationFor } from "../support/broker/installation.ts";

const POLICY = `# What is mine stays mine.
id: default
name: Allowing
mode: enforce

fs:
  read: ["/**"]   # all of it
  deny_read:
    - "$HOME/.ssh"
  write: ["$PROJECT/**"]   # and no more

commands:
  allowed:
    - "sh -c *"   # the tests' own
    - echo *
    - cat *
  denied:
    - sudo *

net:
  allowed: [registry.example]
`;

describe.each(actors())("policy allow, as $kind", (actor) => {
  let broker: TestBroker;
  let outside: HomeFolder;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    outside = new HomeFolder(actor);
  });
  afterAll(async () => {
    outside.remove();
    await broker.stop();
  });
  const file = (name = "default"): string => join(broker.home, "policies", `${name}.yaml`);
  const text = (name?: string): string => readFileSync(file(name), "utf8");
  const allow = (...words: readonly string[]) => broker.cli(["policy", "allow", ...words]);
  beforeEach(() => broker.write(file(), POLICY));

  test("a place is written by the next command, and not before; comments and layout stay", async () => {
    const into = join(outside.path, "place");
    outside.write("place/there", "old\n");
    const write = { argv: ["sh", "-c", 'echo new > "$1/there"', "sh", into] };
    expect((await broker.run(write)).exit).not.toBe(0);
    const { code, stdout, stderr } = await allow("write", into, "--yes");
    expect([code, stderr]).toEqual([0, ""]);
    const home = realpathSync(actor.home);
    const entry = `"$HOME${into.slice(home.length)}/**"`;
    expect(stdout).toContain(
      `-  write: ["$PROJECT/**"]   # and no more\n+  write: ["$PROJECT/**", ${entry}]   # and no more\n`,
    );
    expect(text()).toBe(POLICY.replace(`["$PROJECT/**"]`, `["$PROJECT/**", ${entry}]`));
    expect(await broker.run(write)).toMatchObject({ exit: 0 });
    expect(readFileSync(join(into, "there"), "utf8")).toBe("new\n");
    // Nothing is left of the file that was renamed into its place.
    const names = readdirSync(join(broker.home, "policies"));
    expect(names.filter((name) => !name.endsWith(".yaml"))).toEqual([]);
    const again = await allow("write", `${into}/deeper/`);
    expect(again).toMatchObject({ code: 0, stderr: "" });
    expect(again.stdout).toMatch(
      /^already allowed by default\.yaml:10: .* in fs\.write\. Nothing was changed\n/,
    );
  });

  test("--dry-run shows the change and writes nothing; where nobody can be asked it is written", async () => {
    const shown = await allow("net", "api.example.org:8443", "--dry-run");
    expect(shown).toMatchObject({ code: 0, stderr: "" });
    expect(shown.stdout).toContain(`+  allowed: [registry.example, "api.example.org:8443"]\n`);
    expect(text()).toBe(POLICY);
    expect((await allow("net", "api.example.org:8443")).code).toBe(0);
    expect(text()).toContain("api.example.org:8443");
  });

  test("a name and a pattern hold for what is checked next", async () => {
    expect(await broker.refused({ cmd: "date -u" })).toMatchObject({ code: "policy_denied" });
    expect((await allow("command", "date *", "--yes")).code).toBe(0);
    expect(await broker.run("date -u")).toMatchObject({ exit: 0 });
    expect(text()).toBe(POLICY.replace("    - cat *\n", '    - cat *\n    - "date *"\n'));
    expect((await allow("net", "*.example.org", "--yes")).code).toBe(0);
    const shown = await broker.cli(["policy", "show"]);
    expect(shown.stdout).toMatch(/net\.allowed +\*\.example\.org/);
    expect((await allow("net", "a.example.org")).stdout).toMatch(
      /^already allowed by default\.yaml:\d+: '\*\.example\.org'/,
    );
  });

  test("what a line refuses all the same is not pretended: it is named, and nothing changes", async () => {
    for (const [words, line] of [
      [["read", "~/.ssh/config"], /'\$HOME\/\.ssh' in fs\.deny_read \(default\.yaml:9\)/],
      [["write", "~/.ssh"], /'\$HOME\/\.ssh' in fs\.deny_read \(default\.yaml:9\)/],
      [["command", "sudo apt-get *"], /'sudo \*' in commands\.denied \(default\.yaml:18\)/],
    ] as const) {
      const { code, stderr } = await allow(...words, "--yes");
      expect([words, code, stderr]).toEqual([words, 125, expect.stringMatching(line)]);
    }
    expect(text()).toBe(POLICY);
  });

  test("what no policy can give is refused", async () => {
    for (const [kind, what] of [
      ["write", "~"],
      ["write", "/etc/hosts"],
      ["write", "/tmp/substrate-nothing"],
      ["write", broker.home],
      ["read", join(broker.home, "policies")],
      ["net", "localhost:80"],
      ["command", ""],
      ["all", "x"],
    ] as const)
      expect([kind, what, (await allow(kind, what, "--yes")).code]).toEqual([kind, what, 125]);
    expect(text()).toBe(POLICY);
  });

  test("a shipped policy gets one of the operator's own that starts from it, and holds", async () => {
    const into = join(outside.path, "copied");
    mkdirSync(into);
    outside.own();
    const { code, stdout } = await allow("write", into, "--policy", "strict", "--yes");
    expect(code).toBe(0);
    expect(stdout).toMatch(/'strict' is a shipped policy: '\S+strict\.yaml' extends it and takes its place/);
    expect(statSync(file("strict")).uid).toBe(actor.uid);
    expect(text("strict").split("\n").slice(1)).toEqual([
      "id: strict",
      'name: "Strict"',
      "extends: strict",
      "",
      "fs:",
      "  write:",
      expect.stringMatching(/^ {4}- "\$HOME\/.*\/copied\/\*\*"$/),
      "",
    ]);
    expect((await broker.cli(["policy", "test", "strict"])).code).toBe(0);
    expect((await broker.run({ argv: ["sh", "-c", 'echo x > "$1/x"', "sh", into] })).exit).not.toBe(0);
    expect(
      await broker.run({ argv: ["sh", "-c", 'echo x > "$1/x"', "sh", into], profile: "strict" }),
    ).toMatchObject({
      decision: { mode: "enforce" },
    });
    expect((await allow("write", into, "--policy", "strict")).stdout).toMatch(
      /^already allowed by strict\.yaml:/,
    );
  });

  test("the policy that holds for the agent and for the place is the one that changes", async () => {
    broker.write(file("agents"), "id: agents\nname: Agents\n");
    broker.write(join(broker.home, "config.yaml"), `projects: ["/"]\nagents:\n  ann: { policy: agents }\n`);
    try {
      expect((await allow("net", "one.example", "--agent", "ann", "--yes")).code).toBe(0);
      expect(text("agents")).toBe('id: agents\nname: Agents\n\nnet:\n  allowed:\n    - "one.example"\n');
      expect(text()).toBe(POLICY);
      broker.write(join(broker.project, ".substrate-profile"), "readonly\n");
      const narrowed = await allow("net", "two.example", "--dry-run");
      expect(narrowed.stdout).toContain("Policy 'readonly' also applies here and does not allow it");
    } finally {
      broker.write(join(broker.home, "config.yaml"), `projects: ["/", "${broker.folder}"]\n`);
      renameSync(join(broker.project, ".substrate-profile"), join(broker.folder, "gone"));
    }
  });

  test("a policy that does not load is not touched, and says where", async () => {
    broker.write(file(), `${POLICY}nonsense\n`);
    const { code, stderr } = await allow("net", "x.example", "--yes");
    expect([code, stderr]).toEqual([
      125,
      expect.stringMatching(/does not load.*Mend its file first[^]*default\.yaml:22:1/),
    ]);
    expect(text()).toBe(`${POLICY}nonsense\n`);
  });

  test("mode and owner stay, and a link stays one", async () => {
    const real = join(broker.folder, "dotfiles.yaml");
    broker.write(real, POLICY);
    chmodSync(real, 0o640);
    renameSync(file(), join(broker.folder, "kept.yaml"));
    symlinkSync(real, file());
    try {
      expect((await allow("net", "linked.example", "--yes")).code).toBe(0);
      expect(readFileSync(real, "utf8")).toContain("linked.example");
      expect(statSync(real)).toMatchObject({ uid: actor.uid });
      expect(statSync(real).mode & 0o7777).toBe(0o640);
      expect(realpathSync(file())).toBe(realpathSync(real));
    } finally {
      renameSync(join(broker.folder, "kept.yaml"), file());
    }
  });

  test("--json says what was done", async () => {
    const { code, stdout } = await allow("net", "json.example", "--yes", "--json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      kind: "net",
      policy: "default",
      file: file(),
      additions: [{ list: "net.allowed", value: "json.example" }],
      already: null,
      written: true,
    });
    const again = await allow("net", "json.example", "--yes", "--json");
    expect(JSON.parse(again.stdout)).toMatchObject({
      already: { source: "default.yaml:21" },
      written: false,
    });
  });

  test("inside a world it says that it is for a person, and changes nothing", async () => {
    const { node, launcher } = await installationFor(actor);
    const open = "id: default\nname: Open\nmode: enforce\n";
    broker.write(file(), open);
    const line = `SUBSTRATE_HOME='${broker.home}' '${node}' '${launcher}' policy allow net x.example --yes`;
    for (const cmd of [line, `unset SUBSTRATE_SPAN_ID; ${line}`]) {
      const reply = await broker.run(cmd);
      expect([reply.exit, reply.stderr]).toEqual([
        125,
        expect.stringContaining("Cannot run 'substrate policy allow' inside a world"),
      ]);
    }
    expect(text()).toBe(open);
    expect(existsSync(join(broker.project, "policies"))).toBe(false);
  });
});

describe.each(actors().slice(0, 1))("policy allow at a terminal, as $kind", (actor) => {
  test.each([
    ["y\r", 0, true],
    ["\r", 125, false],
    ["n\r", 125, false],
    ["\u0003", 125, false],
  ])("the answer %j ends with %i", async (typed, code, written) => {
    const broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    try {
      const ended = await askedAt(broker, ({ type }) => type(typed));
      expect(ended.text).toContain("Write it?");
      expect([
        ended.code,
        readFileSync(join(broker.home, "policies/default.yaml"), "utf8").includes("asked.example"),
      ]).toEqual([code, written]);
    } finally {
      await broker.stop();
    }
  });

  test("a file that somebody changes before the yes is left as it is", async () => {
    const broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    try {
      const policy = join(broker.home, "policies/default.yaml");
      const { code, text } = await askedAt(broker, ({ type }) => {
        writeFileSync(policy, `${POLICY}# mine\n`);
        type("y\r");
      });
      expect([code, text]).toEqual([
        125,
        expect.stringContaining("changed meanwhile, so nothing was written"),
      ]);
      expect(readFileSync(policy, "utf8")).toBe(`${POLICY}# mine\n`);
    } finally {
      await broker.stop();
    }
  });

  async function askedAt(broker: TestBroker, answer: (typing: Typing) => void): Promise<Ended> {
    const { node, launcher } = await installationFor(actor);
    const env = { PATH: "/usr/bin:/bin", HOME: actor.home, TERM: "dumb", SUBSTRATE_HOME: broker.home };
    return runAtTerminal(
      [node, launcher, "policy", "allow", "net", "asked.example"],
      { cwd: broker.project, env },
      whenShown("[n]", answer),
    );
  }
});
