/** `substrate init`, as a person uses it: real settings files in a home of their own, and a stand-in for the hook's program. */
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, relative } from "node:path";
import { spawn } from "node-pty";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { TestBroker } from "../support/broker/broker.ts";
import { installationIn, type TestInstallation } from "../support/broker/installation.ts";
import { standInFor } from "../support/broker/stand-in-front.ts";
import { hostGit } from "../support/git/git.ts";
import { HomeFolder } from "../support/users/folders.ts";
import { actors, type Ended } from "../support/users/users.ts";

const CLAUDE = `{
\t"permissions"  : { "deny": ["Read(./.env)"], "allow": [ "Bash(ls:*)" ] },
\t"hooks": {
\t\t"PreToolUse": [
\t\t\t{ "matcher": "Write", "hooks": [{ "type": "command", "command": "mine" }] }
\t\t]
\t},
\t"model":"opus"
}`;

const GEMINI = `// My settings.
{
    "ui" :  { "theme": "Default" }, // dark, at night
    /* "hooks": {} */
    "general": {
        "vimMode": true // always
    } // the end
}
`;

const CODEX = `# My settings
model   = "x"   # fast

[ features ]   # odd
web_search = true

[hooks.state."/a:pre_tool_use:0:0"]
trusted_hash = 'sha256:0'`;

const CODEX_HOOKS = `model = "x"
[[hooks.PreToolUse]] # mine
matcher = "^mcp__"
  [[hooks.PreToolUse.hooks]]
  type = "command"
  command = '''mine
[x]'''
`;

const crlf = (text: string): string => text.replaceAll("\n", "\r\n");

describe.each(actors())("init, as $kind", (actor) => {
  let broker: TestBroker;
  let installation: TestInstallation;
  let place: HomeFolder;
  let home: string;
  beforeAll(async () => {
    place = new HomeFolder(actor);
    installation = installationIn(place.path, actor);
    standInFor(installation.root);
    broker = await TestBroker.start(actor, { installation });
    hostGit(actor, broker.project, "init", "-q");
  });
  afterAll(async () => {
    await broker.stop();
    place.remove();
  });
  beforeEach(() => {
    home = join(place.path, "person");
    mkdirSync(home);
    place.own();
  });
  afterEach(() => {
    for (const path of [home, join(broker.home, "connections"), join(broker.home, "config.yaml")])
      rmSync(path, { recursive: true, force: true });
  });

  const init = (words: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> =>
    broker.cli(["init", ...words], { env: { HOME: home, ...env } });
  const put = (name: string, text: string): string =>
    place.write(relative(place.path, join(home, name)), text);
  const read = (name: string): string => readFileSync(join(home, name), "utf8");
  const config = (): string => join(broker.home, "config.yaml");

  /** All files and links below the home, with mode and content. */
  function snapshot(folder = home): Readonly<Record<string, string>> {
    const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).sort();
    return Object.fromEntries(
      names.map((name) => {
        const path = join(folder, name);
        const stat = lstatSync(path);
        return [
          name,
          `${stat.mode.toString(8)} ${stat.uid} ${stat.isFile() ? readFileSync(path, "latin1") : ""}`,
        ];
      }),
    );
  }

  const FILES: readonly (readonly [
    agent: string,
    files: Readonly<Record<string, string>>,
    written: string,
  ])[] = [
    ["claude-code", { ".claude/settings.json": CLAUDE }, ".claude/settings.json"],
    ["claude-code", { ".claude/settings.json": crlf(`${CLAUDE}\n`) }, ".claude/settings.json"],
    ["claude-code", { ".claude/settings.json": `\uFEFF{"model":"opus"}` }, ".claude/settings.json"],
    ["claude-code", {}, ".claude/settings.json"],
    ["gemini", { ".gemini/settings.json": GEMINI }, ".gemini/settings.json"],
    ["gemini", { ".gemini/settings.json": crlf(GEMINI) }, ".gemini/settings.json"],
    ["gemini", {}, ".gemini/settings.json"],
    ["codex", { ".codex/config.toml": CODEX }, ".codex/hooks.json"],
    ["codex", { ".codex/config.toml": crlf(CODEX_HOOKS) }, ".codex/config.toml"],
    ["codex", { ".codex/hooks.json": '{"hooks": {}}', ".codex/config.toml": "" }, ".codex/hooks.json"],
    ["codex", {}, ".codex/hooks.json"],
    [
      "opencode",
      { ".config/opencode/opencode.jsonc": "{} // mine" },
      ".config/opencode/plugins/substrate.js",
    ],
    ["opencode", {}, ".config/opencode/plugins/substrate.js"],
  ];

  test.each(FILES)(
    "%s with %j: connected once, again without a change, and undone byte for byte",
    async (agent, files, written) => {
      for (const [name, text] of Object.entries(files)) put(name, text);
      const [name = "", text = ""] = Object.entries(files)[0] ?? [];
      if (name !== "") chmodSync(join(home, name), 0o640);
      writeFileSync(config(), "# the operator's\nworlds: { idle_secs:  7 }");
      place.own();
      broker.write(config(), readFileSync(config(), "utf8"));
      const before = snapshot();

      const first = await init([agent, "--yes"]);
      expect([first.code, first.stderr]).toEqual([0, ""]);
      expect(first.stdout).toContain(`+++ ${join(home, written)}\n`);
      expect(first.stdout).toContain("$ sudo -n true\n    denied:\n      stand-in says no\n");
      expect(first.stdout).toContain("$ echo hello\n    allowed, and runs as:\n      stand-in exec\n");
      expect(read(written)).toContain(`.build/substrate' hook ${agent}`);
      expect(readFileSync(config(), "utf8")).toBe(
        `# the operator's\nworlds: { idle_secs:  7 }\nagents:\n  ${agent}: { policy: ${agent} }`,
      );
      const connected = snapshot();
      // What was there stands there still, each line in its place.
      if (name !== "") expect(linesLeft(text, read(name))).toEqual([]);
      if (name !== "") expect(statSync(join(home, name)).mode & 0o777).toBe(0o640);

      const second = await init([agent]);
      expect([second.code, second.stderr]).toEqual([0, ""]);
      expect(second.stdout).toMatch(/^.* is connected already in your own settings: nothing was changed\n/);
      expect(snapshot()).toEqual(connected);

      const undone = await init([agent, "--undo"]);
      expect([undone.code, undone.stderr]).toEqual([0, ""]);
      expect(snapshot()).toEqual(before);
      expect(readFileSync(config(), "utf8")).toBe("# the operator's\nworlds: { idle_secs:  7 }");
      expect(readdirSync(join(broker.home, "connections"), { recursive: true })).toEqual(["copies"]);
      expect((await init([agent, "--undo"])).stdout).toContain("nothing to undo");
    },
  );

  test("a file that somebody changed since keeps the change, and loses only what init added", async () => {
    put(".claude/settings.json", CLAUDE);
    put(".codex/config.toml", CODEX);
    expect((await init(["claude-code", "--yes"])).code).toBe(0);
    expect((await init(["codex", "--yes"])).code).toBe(0);
    put(".claude/settings.json", read(".claude/settings.json").replace('"opus"', '"haiku"'));
    put(".codex/config.toml", `${read(".codex/config.toml")}\n[tui]\nnotifications = true\n`);
    const claude = await init(["claude-code", "--undo"]);
    expect(claude.stdout).toContain("note: it was changed since, so only what init added is taken out");
    expect(read(".claude/settings.json")).toBe(CLAUDE.replace('"opus"', '"haiku"'));
    expect(readFileSync(config(), "utf8")).toBe("agents:\n  codex: { policy: codex }\n");
    expect((await init(["codex", "--undo"])).code).toBe(0);
    expect(read(".codex/config.toml")).toBe(`${CODEX}\n[tui]\nnotifications = true\n`);
    expect(existsSync(config())).toBe(false);
    expect(readdirSync(join(home, ".codex"))).toEqual(["config.toml"]);
  });

  test("undo says so where a file is gone, or broken, and leaves it", async () => {
    expect((await init(["gemini", "--yes"])).code).toBe(0);
    put(".gemini/settings.json", "{ broken");
    const broken = await init(["gemini", "--undo"]);
    expect([broken.code, broken.stderr]).toEqual([125, expect.stringContaining("line 1, column")]);
    expect(read(".gemini/settings.json")).toBe("{ broken");
    rmSync(join(home, ".gemini/settings.json"));
    expect(await init(["gemini", "--undo"])).toMatchObject({ code: 0 });
    expect(existsSync(config())).toBe(false);
  });

  test("a link is followed inside of the home, and stays a link", async () => {
    put("dotfiles/claude.json", CLAUDE);
    mkdirSync(join(home, ".claude"));
    symlinkSync("../dotfiles/claude.json", join(home, ".claude/settings.json"));
    place.own();
    expect((await init(["claude-code", "--yes"])).code).toBe(0);
    expect(lstatSync(join(home, ".claude/settings.json")).isSymbolicLink()).toBe(true);
    expect(read("dotfiles/claude.json")).toContain("hook claude-code");
    expect((await init(["claude-code", "--undo"])).code).toBe(0);
    expect(read("dotfiles/claude.json")).toBe(CLAUDE);
  });

  test.each([
    [
      "a link out of the home",
      (path: string) => symlinkSync("../../elsewhere.json", path),
      "outside of your home",
    ],
    ["a link to nothing", (path: string) => symlinkSync("nowhere", path), "a link to nothing"],
    ["a folder", (path: string) => mkdirSync(path), "it is not a file"],
    [
      "bytes that are no text",
      (path: string) => writeFileSync(path, Buffer.from([0x7b, 0xff, 0x7d])),
      "not UTF-8",
    ],
    ["broken JSON", (path: string) => writeFileSync(path, '{\n  "a": 1\n  "b": 2\n}'), "at line 3, column 3"],
    [
      "hooks of another shape",
      (path: string) => writeFileSync(path, '{"hooks": 1}'),
      "'hooks' is not an object",
    ],
    ["a read-only file", (path: string) => writeFileSync(path, "{}", { mode: 0o444 }), "is read-only"],
  ])("%s is refused, and nothing is changed", async (_what, make, why) => {
    place.write("elsewhere.json", "{}");
    mkdirSync(join(home, ".claude"));
    make(join(home, ".claude/settings.json"));
    place.own();
    const before = snapshot();
    const { code, stderr } = await init(["claude-code", "--yes"]);
    expect([code, stderr]).toEqual([125, expect.stringContaining(why)]);
    expect(snapshot()).toEqual(before);
    expect(existsSync(config())).toBe(false);
    expect(readFileSync(join(place.path, "elsewhere.json"), "utf8")).toBe("{}");
    expect((await init(["--json"])).stdout).not.toContain(home + "/.claude/settings.json");
  });

  test.each([
    ["TOML", ".codex/config.toml", "a = 1\na = 2\n", "line 2, column 1"],
    ["config.yaml", undefined, "agents: [a]\n", "config.yaml:1:1"],
  ])("broken %s is refused before the first file is written", async (_what, name, text, where) => {
    if (name !== undefined) put(name, text);
    else broker.write(config(), text);
    const before = snapshot();
    const { code, stderr } = await init(["codex", "--yes"]);
    expect([code, stderr]).toEqual([125, expect.stringContaining(where)]);
    expect(snapshot()).toEqual(before);
  });

  test("without a terminal and without --yes the changes are shown and not written", async () => {
    put(".claude/settings.json", CLAUDE);
    const before = snapshot();
    const { code, stdout, stderr } = await init(["claude-code"]);
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining("Nothing was written: there is nobody to ask"),
    ]);
    expect(stdout).toContain("+  claude-code: { policy: claude-code }\n");
    expect(stdout).toContain('-\t\t\t{ "matcher": "Write"');
    expect(snapshot()).toEqual(before);
    expect(existsSync(config())).toBe(false);
  });

  test.each([
    ["y\r", 0],
    ["n\r", 1],
    ["\r", 1],
  ])("at a terminal a person is asked: %j", async (typed, wanted) => {
    const { node, launcher } = installation;
    const change =
      process.getuid?.() === actor.uid
        ? []
        : ["setpriv", `--reuid=${actor.uid}`, `--regid=${actor.gid}`, "--clear-groups"];
    const [program = node, ...words] = [...change, node, launcher, "init", "claude-code"];
    const terminal = spawn(program, words, {
      cwd: broker.project,
      cols: 200,
      env: { PATH: "/usr/bin:/bin", HOME: home, TERM: "dumb", SUBSTRATE_HOME: broker.home },
    });
    let shown = "";
    terminal.onData((data) => {
      const asks = !shown.includes("[n]");
      shown += data;
      if (asks && shown.includes("[n]")) terminal.write(typed);
    });
    const code = await new Promise<number>((resolve) => terminal.onExit(({ exitCode }) => resolve(exitCode)));
    expect([code, shown]).toEqual([wanted, expect.stringContaining("Write it? y)es [n]")]);
    expect(existsSync(join(home, ".claude/settings.json"))).toBe(wanted === 0);
  });

  test.each([
    ["broken", "gives no answer that the agent understands (should be denied)"],
    ["open", "allowed, and runs as (should be denied)"],
    ["closed", "denied (should be allowed)"],
  ])("a hook that is %s fails the proof, and the way back is named", async (answer, words) => {
    for (const agent of ["claude-code", "gemini", "opencode"]) {
      const { code, stdout, stderr } = await init([agent, "--yes"], { STAND_IN: answer });
      const asPlugin = agent === "opencode" && answer === "broken" ? "denied (should be allowed)" : words;
      expect([agent, code, stdout]).toEqual([agent, 1, expect.stringContaining(asPlugin)]);
      expect(stderr).toContain(`'substrate init ${agent} --undo' gives the files back as they were`);
    }
  });

  test.each([
    ["claude-code", ".claude/settings.json", "{\n  // mine\n}", "because of a comment at line 2, column 3"],
    ["claude-code", ".claude/settings.json", '{"disableAllHooks": true}', "sets disableAllHooks"],
    ["gemini", ".gemini/settings.json", '{"a": 1,}', "because of a comma too many"],
    ["gemini", ".gemini/settings.json", '{"hooksConfig": {"enabled": false}}', "switches hooks off"],
    ["codex", ".codex/config.toml", "[features]\nhooks = false\n", "hooks = false"],
    ["codex", ".codex/hooks.json", "// c\n{}", "because of a comment at line 1, column 1"],
  ])("%s is not called connected where %s is %j", async (agent, name, text, why) => {
    put(name, text);
    const { code, stderr } = await init([agent, "--yes"]);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/does not ask Substrate yet: /)]);
    expect(stderr).toContain(why);
    expect((await init([agent, "--undo"])).code).toBe(0);
    expect(read(name)).toBe(text);
  });

  test("Codex's sandbox is a change of its own with a reason; a person's own choice stays", async () => {
    const { stdout } = await init(["codex"]);
    expect(stdout).toMatch(
      /own sandbox is switched off, because it blocks the broker's socket[^\n]*:\n---[^\n]*\n\+\+\+[^\n]*config\.toml\n@@[^\n]*\n\+sandbox_mode = "danger-full-access"\n/,
    );
    put(".codex/config.toml", 'sandbox_mode = "read-only" # mine\n');
    const own = await init(["codex", "--yes"]);
    expect(own.stdout).toContain('sandbox_mode is "read-only" there, and stays');
    expect(own.stdout).toContain("Trust the new hook before the first task");
    expect(read(".codex/config.toml")).toBe('sandbox_mode = "read-only" # mine\n');
  });

  test("--project writes the project's settings, and the policy stays while one place is connected", async () => {
    const settings = join(broker.project, ".claude/settings.json");
    expect((await init(["claude-code", "--yes"])).code).toBe(0);
    const { code, stdout } = await init(["claude-code", "--project", "--yes"]);
    expect([code, stdout]).toEqual([0, expect.stringContaining("Do not commit the settings")]);
    expect(readFileSync(settings, "utf8")).toContain("hook claude-code");
    const { connected } = JSON.parse((await broker.cli(["status", "--json"])).stdout) as {
      connected: readonly {
        agent_id: string;
        project: string | null;
        intact: boolean;
        last_command: unknown;
      }[];
    };
    expect(connected.map(({ agent_id: agent, project, intact }) => [agent, project, intact])).toEqual([
      ["claude-code", broker.project, true],
      ["claude-code", null, true],
    ]);
    const own = await init(["claude-code", "--undo"]);
    expect(own.stdout).toContain("the agent is connected in another place too");
    expect(readFileSync(config(), "utf8")).toContain("claude-code");
    expect((await init(["claude-code", "--project", "--undo"])).code).toBe(0);
    expect(existsSync(dirname(settings))).toBe(false);
    expect(existsSync(config())).toBe(false);
  });

  test("what is installed, connected and was last run is listed", async () => {
    put("bin/claude", "#!/bin/sh\n");
    put("bin/aider", "#!/bin/sh\n");
    chmodSync(join(home, "bin/claude"), 0o755);
    chmodSync(join(home, "bin/aider"), 0o755);
    mkdirSync(join(home, ".codex"));
    place.own();
    const path = { PATH: `${home}/bin:/usr/bin:/bin` };
    expect((await init(["claude-code", "--yes"], path)).code).toBe(0);
    const { stdout } = await init([], path);
    expect(stdout).toContain(
      `claude-code  ${home}/bin/claude, ${home}/.claude\n             connected 0 s ago in your own settings\n`,
    );
    expect(stdout).toContain(`codex        ${home}/.codex, not connected\n`);
    expect(stdout).toContain("gemini       not found\n");
    expect(stdout).toContain(`aider        ${home}/bin/aider, not supported yet\n`);
    await broker.cli(["exec", "--agent", "claude-code", "--", "echo the last one"]);
    const status = await broker.cli(["status"]);
    expect(status.stdout).toMatch(
      /connected {2}claude-code, connected \d+ s ago in your own settings; \d+ s ago: echo the last one\n/,
    );
    put(".claude/settings.json", "{}");
    expect((await broker.cli(["status"])).stdout).toContain(
      "but its settings were changed since ('substrate init claude-code' mends them)",
    );
    expect((await init(["claude-code", "--yes"], path)).code).toBe(0);
    expect(read(".claude/settings.json")).toContain("hook claude-code");
  });

  test("as JSON the changes, the proof and what is left to do stand apart", async () => {
    const shown = await init(["codex", "--json"]);
    expect(shown.code).toBe(1);
    expect(JSON.parse(shown.stdout)).toMatchObject({ agent: "codex", written: false, proof: null });
    const { code, stdout } = await init(["codex", "--json", "--yes"]);
    const reply = JSON.parse(stdout) as { changes: readonly { path: string }[]; by_hand: readonly string[] };
    expect(code).toBe(0);
    expect(reply).toMatchObject({ project: null, written: true, blockers: [], proof: { proved: true } });
    expect(reply.changes.map(({ path }) => path)).toEqual([
      config(),
      join(home, ".codex/hooks.json"),
      join(home, ".codex/config.toml"),
    ]);
    expect(reply.by_hand.length).toBeGreaterThan(1);
  });

  test.each([
    [["cursor"], "Cursor is not supported yet"],
    [["copilot", "--yes"], "is not supported yet"],
    [["aider"], "is not supported yet"],
    [["claude"], "Unknown agent 'claude'"],
    [["--undo"], "needs an agent"],
  ])("%j is refused in words", async (words, why) => {
    const { code, stderr } = await init(words);
    expect([code, stderr]).toEqual([125, expect.stringContaining(why)]);
  });

  test("inside a world nobody connects an agent", async () => {
    const words = ["exec", "--", installation.node, installation.launcher, "init", "claude-code", "--yes"];
    const { code, stderr } = await broker.cli(words);
    expect([code, stderr]).toEqual([
      125,
      expect.stringContaining("Cannot run 'substrate init' inside a world"),
    ]);
  });
});

/** Lines of `text` that `edited` no longer has in this order; a comma at the end of a value may have come. */
function linesLeft(text: string, edited: string): readonly string[] {
  const plain = (line: string): string => line.trimEnd().replaceAll(/,(?=\s*(\/\/.*)?$)/g, "");
  let rest = edited.split("\n").map(plain);
  return text.split("\n").filter((line) => {
    const inline = rest.findIndex(
      (each) => each === plain(line) || each.startsWith(plain(line).slice(0, -2)),
    );
    rest = rest.slice(Math.max(inline + 1, 0));
    return inline < 0;
  });
}
