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
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { hashOf } from "../../api/cli/init/files.ts";
import { type Part, withoutPart } from "../../api/cli/init/parts.ts";
import type { Connection } from "../../api/cli/init/records.ts";
import { hookOf, InitPlace, linesLeft } from "../support/broker/init-place.ts";
import { actors } from "../support/users/users.ts";

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

const CURSOR = `{
    "version": 1,
    "hooks": {
        "beforeShellExecution": [ { "command": "./mine.sh", "matcher": "curl" } ],
        "stop": [{ "command": "./done.sh" }]
    }
}
`;

const AIDER = `# My settings
model:   sonnet   # fast

set-env:
    # mine
    -   A=b   # one
    - C=d
lint-cmd: [ "python: flake8" ]`;

const crlf = (text: string): string => text.replaceAll("\n", "\r\n");

describe.each(actors())("init, as $kind", (actor) => {
  let place: InitPlace;
  beforeAll(async () => {
    place = await InitPlace.start(actor);
  });
  afterAll(() => place.stop());
  beforeEach(() => place.open());
  afterEach(() => place.close());

  const init = (...args: Parameters<InitPlace["init"]>): ReturnType<InitPlace["init"]> => place.init(...args);

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
    ["cursor", { ".cursor/hooks.json": CURSOR }, ".cursor/hooks.json"],
    ["cursor", { ".cursor/hooks.json": '{"version":1,"hooks":{}}' }, ".cursor/hooks.json"],
    ["cursor", {}, ".cursor/hooks.json"],
    ["copilot", { ".copilot/config.json": "// managed\n{}\n" }, ".copilot/hooks/substrate.json"],
    ["copilot", {}, ".copilot/hooks/substrate.json"],
    ["aider", { ".aider.conf.yml": AIDER }, ".aider.conf.yml"],
    ["aider", { ".aider.conf.yml": crlf(`${AIDER}\n`) }, ".aider.conf.yml"],
    ["aider", { ".aider.conf.yml": "# nothing yet\n" }, ".aider.conf.yml"],
    ["aider", {}, ".aider.conf.yml"],
  ];

  test.each(FILES)(
    "%s with %j: connected once, again without a change, and undone byte for byte",
    async (agent, files, written) => {
      for (const [name, text] of Object.entries(files)) place.put(name, text);
      const [name = "", text = ""] = Object.entries(files)[0] ?? [];
      if (name !== "") chmodSync(join(place.home, name), 0o640);
      writeFileSync(place.config, "# the operator's\nworlds: { idle_secs:  7 }");
      place.folder.own();
      place.broker.write(place.config, readFileSync(place.config, "utf8"));
      const before = place.snapshot();

      const first = await init([agent, "--yes"]);
      expect([first.code, first.stderr]).toEqual([0, ""]);
      expect(first.stdout).toContain(`+++ ${join(place.home, written)}\n`);
      expect(first.stdout).toMatch(/\$ sudo -n true\n {4}denied:\n {6}(substrate: )?stand-in says no\n/);
      const ours =
        agent === "aider" ? "allowed, and says:\n      hello" : "allowed, and runs as:\n      stand-in exec";
      expect(first.stdout).toContain(`$ echo hello\n    ${ours}\n`);
      expect(place.read(written)).toMatch(agent === "aider" ? /\.build\/substrate-sh"/ : hookOf(agent));
      expect(readFileSync(place.config, "utf8")).toBe(
        `# the operator's\nworlds: { idle_secs:  7 }\nagents:\n  ${agent}: { policy: ${agent} }`,
      );
      const connected = place.snapshot();
      // Every line of the settings before `init` is still there, in the same order.
      if (name !== "") expect(linesLeft(text, place.read(name))).toEqual([]);
      if (name !== "") expect(statSync(join(place.home, name)).mode & 0o777).toBe(0o640);

      const second = await init([agent]);
      expect([second.code, second.stderr]).toEqual([0, ""]);
      expect(second.stdout).toMatch(/^.* is connected already in your own settings: nothing was changed\n/);
      expect(place.snapshot()).toEqual(connected);

      const undone = await init([agent, "--undo"]);
      expect([undone.code, undone.stderr]).toEqual([0, ""]);
      expect(place.snapshot()).toEqual(before);
      expect(readFileSync(place.config, "utf8")).toBe("# the operator's\nworlds: { idle_secs:  7 }");
      expect(readdirSync(join(place.broker.home, "connections"), { recursive: true })).toEqual(["copies"]);
      expect((await init([agent, "--undo"])).stdout).toContain("nothing to undo");
    },
  );

  test("a file that somebody changed since keeps the change, and loses only what init added", async () => {
    place.put(".claude/settings.json", CLAUDE);
    place.put(".codex/config.toml", CODEX);
    expect((await init(["claude-code", "--yes"])).code).toBe(0);
    expect((await init(["codex", "--yes"])).code).toBe(0);
    place.put(".claude/settings.json", place.read(".claude/settings.json").replace('"opus"', '"haiku"'));
    place.put(".codex/config.toml", `${place.read(".codex/config.toml")}\n[tui]\nnotifications = true\n`);
    const claude = await init(["claude-code", "--undo"]);
    expect(claude.stdout).toContain("note: it was changed since, so only what init added is taken out");
    expect(place.read(".claude/settings.json")).toBe(CLAUDE.replace('"opus"', '"haiku"'));
    expect(readFileSync(place.config, "utf8")).toBe("agents:\n  codex: { policy: codex }\n");
    expect((await init(["codex", "--undo"])).code).toBe(0);
    expect(place.read(".codex/config.toml")).toBe(`${CODEX}\n[tui]\nnotifications = true\n`);
    expect(existsSync(place.config)).toBe(false);
    expect(readdirSync(join(place.home, ".codex"))).toEqual(["config.toml"]);
    // The broker holds no settings of a file that is gone, and says nothing of it.
    const { stdout, stderr } = await place.broker.cli(["status"]);
    expect(stdout + stderr).not.toMatch(/config\.yaml|\n *agents /);
  });

  test("other hooks and variables that came since stay, and a file of ours alone goes", async () => {
    for (const agent of ["cursor", "copilot", "aider"]) expect((await init([agent, "--yes"])).code).toBe(0);
    const hooks = JSON.parse(place.read(".cursor/hooks.json")) as { hooks: Record<string, unknown[]> };
    hooks.hooks["preToolUse"]?.unshift({ command: "./mine.sh" });
    place.put(".cursor/hooks.json", JSON.stringify(hooks));
    place.put(
      ".copilot/hooks/substrate.json",
      place.read(".copilot/hooks/substrate.json").replace("60", "61"),
    );
    place.put(".aider.conf.yml", `${place.read(".aider.conf.yml")}  - "MINE=1"\n`);
    for (const agent of ["cursor", "copilot", "aider"]) expect((await init([agent, "--undo"])).code).toBe(0);
    expect(JSON.parse(place.read(".cursor/hooks.json"))).toEqual({
      version: 1,
      hooks: { preToolUse: [{ command: "./mine.sh" }] },
    });
    expect(existsSync(join(place.home, ".copilot"))).toBe(false);
    expect(place.read(".aider.conf.yml")).toBe('set-env:\n  - "MINE=1"\n');
  });

  test("Aider's shell follows a Substrate that was moved", async () => {
    place.put(".aider.conf.yml", "set-env:\n  - SHELL=/old/.build/substrate-sh # ours\n");
    expect((await init(["aider", "--yes"])).code).toBe(0);
    expect(place.read(".aider.conf.yml")).toMatch(
      /^set-env:\n {2}- "SHELL=\/.*\/\.build\/substrate-sh" # ours\n {2}- "SUBSTRATE_AGENT_ID=aider"\n$/,
    );
    expect(place.read(".aider.conf.yml")).not.toContain("/old/");
  });

  test("undo says so where a file is gone, or broken, and leaves it", async () => {
    expect((await init(["gemini", "--yes"])).code).toBe(0);
    place.put(".gemini/settings.json", "{ broken");
    const broken = await init(["gemini", "--undo"]);
    expect([broken.code, broken.stderr]).toEqual([125, expect.stringContaining("line 1, column")]);
    expect(place.read(".gemini/settings.json")).toBe("{ broken");
    rmSync(join(place.home, ".gemini/settings.json"));
    expect(await init(["gemini", "--undo"])).toMatchObject({ code: 0 });
    expect(existsSync(place.config)).toBe(false);
  });

  test.each([
    ["claude-code", ".claude/settings.json", CLAUDE],
    ["gemini", ".gemini/settings.json", GEMINI],
    ["codex", ".codex/hooks.json", undefined],
    ["codex", ".codex/config.toml", CODEX_HOOKS],
    ["opencode", ".config/opencode/plugins/substrate.js", undefined],
  ])(
    "%s as an earlier version wrote %s, without events that are recorded, is brought up to date, and undone byte for byte",
    async (agent, name, text) => {
      if (text !== undefined) place.put(name, text);
      const before = place.snapshot();
      expect((await init([agent, "--yes"])).code).toBe(0);
      const current = place.read(name);
      const path = join(place.broker.home, `connections/${agent}.json`);
      const record = JSON.parse(readFileSync(path, "utf8")) as Connection;
      const isOld = (part: Part): boolean => !JSON.stringify(part).includes("|| exit 0");
      let old = current;
      const files = record.files.map((file) => {
        if (file.path !== join(place.home, name)) return file;
        if (agent === "opencode") {
          old = `${current.split("\n")[0]}\n// An earlier version.\n`;
          return { ...file, after: hashOf(old), parts: [{ kind: "whole", text: old } as const] };
        }
        for (const part of file.parts.toReversed()) if (!isOld(part)) old = withoutPart(old, part).text;
        return { ...file, after: hashOf(old), parts: file.parts.filter(isOld) };
      });
      expect(old).not.toBe(current);
      place.put(name, old);
      place.broker.write(path, JSON.stringify({ ...record, files }));

      const again = await init([agent, "--yes"]);
      expect([again.code, again.stderr]).toEqual([0, ""]);
      expect(again.stdout).toContain("are recorded, and stop nothing");
      expect(place.read(name)).toBe(current);
      expect((await init([agent, "--undo"])).code).toBe(0);
      expect(place.snapshot()).toEqual(before);
    },
  );

  test("a link is followed inside of the home, and stays a link", async () => {
    place.put("dotfiles/claude.json", CLAUDE);
    mkdirSync(join(place.home, ".claude"));
    symlinkSync("../dotfiles/claude.json", join(place.home, ".claude/settings.json"));
    place.folder.own();
    expect((await init(["claude-code", "--yes"])).code).toBe(0);
    expect(lstatSync(join(place.home, ".claude/settings.json")).isSymbolicLink()).toBe(true);
    expect(place.read("dotfiles/claude.json")).toContain("hook claude-code");
    expect((await init(["claude-code", "--undo"])).code).toBe(0);
    expect(place.read("dotfiles/claude.json")).toBe(CLAUDE);
  });

  test("Codex's sandbox is switched off once its hook is trusted, as a change of its own with a reason; a person's own choice stays", async () => {
    const first = await init(["codex"]);
    expect(first.stdout).not.toContain("danger-full-access");
    const hooks = join(place.home, ".codex/hooks.json");
    const trust = `[hooks.state."${hooks}:pre_tool_use:0:0"]\ntrusted_hash = "sha256:00"\n`;
    place.put(".codex/config.toml", trust);
    // Trust of a hook that is not there yet is another hook's.
    expect((await init(["codex", "--yes"])).stdout).not.toContain("danger-full-access");
    const { stdout } = await init(["codex"]);
    expect(stdout).toMatch(
      /own sandbox is switched off, because it blocks the broker's socket[^\n]*:\n---[^\n]*\n\+\+\+[^\n]*config\.toml\n@@[^\n]*\n\+sandbox_mode = "danger-full-access"\n/,
    );
    const mine = `sandbox_mode = "read-only" # mine\n${trust}`;
    place.put(".codex/config.toml", mine);
    const own = await init(["codex", "--yes"]);
    expect(own.stdout).toContain('sandbox_mode is "read-only" there, and stays');
    expect(own.stdout).toContain("Trust the new hooks before the first task");
    expect(place.read(".codex/config.toml")).toBe(mine);
  });

  test("--project writes the project's settings, and the policy stays while one place is connected", async () => {
    const settings = join(place.broker.project, ".claude/settings.json");
    expect((await init(["claude-code", "--yes"])).code).toBe(0);
    const { code, stdout } = await init(["claude-code", "--project", "--yes"]);
    expect([code, stdout]).toEqual([0, expect.stringContaining("Do not commit the settings")]);
    expect(readFileSync(settings, "utf8")).toContain("hook claude-code");
    const { connected } = JSON.parse((await place.broker.cli(["status", "--json"])).stdout) as {
      connected: readonly {
        agent_id: string;
        project: string | null;
        intact: boolean;
        last_command: unknown;
      }[];
    };
    expect(connected.map(({ agent_id: agent, project, intact }) => [agent, project, intact])).toEqual([
      ["claude-code", place.broker.project, true],
      ["claude-code", null, true],
    ]);
    const own = await init(["claude-code", "--undo"]);
    expect(own.stdout).toContain("the agent is connected in another place too");
    expect(readFileSync(place.config, "utf8")).toContain("claude-code");
    expect((await init(["claude-code", "--project", "--undo"])).code).toBe(0);
    expect(existsSync(dirname(settings))).toBe(false);
    expect(existsSync(place.config)).toBe(false);
  });

  test.each([
    ["cursor", ".cursor/hooks.json", "Trust the project in Cursor"],
    ["copilot", ".github/hooks/substrate.json", "Trust the project in Copilot"],
    ["aider", ".aider.conf.yml", "Do not commit the settings"],
  ])("--project connects %s by %s of the project, and gives it back", async (agent, name, words) => {
    const path = join(place.broker.project, name);
    const { code, stdout } = await init([agent, "--project", "--yes"]);
    expect([code, stdout]).toEqual([0, expect.stringContaining(words)]);
    expect([existsSync(path), readdirSync(place.home)]).toEqual([true, []]);
    expect((await init([agent, "--project"])).stdout).toContain("is connected already");
    expect((await init([agent, "--project", "--undo"])).code).toBe(0);
    expect([
      existsSync(path),
      existsSync(dirname(path) === place.broker.project ? path : dirname(path)),
    ]).toEqual([false, false]);
  });

  test("a folder that the environment names is written too, and undone with the usual one", async () => {
    const other = join(place.folder.path, "other");
    expect((await init(["claude-code", "--yes"])).code).toBe(0);
    expect((await init(["claude-code", "--yes"], { CLAUDE_CONFIG_DIR: other })).code).toBe(0);
    expect(readFileSync(join(other, "settings.json"), "utf8")).toContain("hook claude-code");
    expect((await init(["claude-code", "--undo"])).code).toBe(0);
    expect([existsSync(other), readdirSync(place.home)]).toEqual([false, []]);
  });

  test("in a folder that is no project, the proof takes a new repository", async () => {
    const { code, stderr } = await place.broker.cli(["init", "gemini", "--yes"], {
      cwd: place.home,
      env: { HOME: place.home },
    });
    expect([code, stderr]).toEqual([0, ""]);
  });

  test("what is installed, connected and was last run is listed", async () => {
    place.put("bin/claude", "#!/bin/sh\n");
    place.put("bin/aider", "#!/bin/sh\n");
    chmodSync(join(place.home, "bin/claude"), 0o755);
    chmodSync(join(place.home, "bin/aider"), 0o755);
    mkdirSync(join(place.home, ".codex"));
    place.folder.own();
    const path = { PATH: `${place.home}/bin:/usr/bin:/bin` };
    expect((await init(["claude-code", "--yes"], path)).code).toBe(0);
    const { stdout } = await init([], path);
    // How many seconds passed is the machine's affair.
    expect(stdout.replace(/connected \d+ s/, "connected 0 s")).toContain(
      `claude-code  ${place.home}/bin/claude, ${place.home}/.claude\n             connected 0 s ago in your own settings\n`,
    );
    expect(stdout).toContain(`codex        ${place.home}/.codex, not connected\n`);
    expect(stdout).toContain("gemini       not found\n");
    expect(stdout).toContain(`aider        ${place.home}/bin/aider, not connected\n`);
    await place.broker.cli(["exec", "--agent", "claude-code", "--", "echo the last one"]);
    const status = await place.broker.cli(["status"]);
    expect(status.stdout).toMatch(
      /connected {2}claude-code, connected \d+ s ago in your own settings; \d+ s ago: echo the last one\n/,
    );
    place.put(".claude/settings.json", "{}");
    expect((await place.broker.cli(["status"])).stdout).toContain(
      "but its settings were changed since ('substrate init claude-code' mends them)",
    );
    expect((await init(["claude-code", "--yes"], path)).code).toBe(0);
    expect(place.read(".claude/settings.json")).toContain("hook claude-code");
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
      place.config,
      join(place.home, ".codex/hooks.json"),
      join(place.home, ".codex/hooks.json"),
    ]);
    expect(reply.by_hand.length).toBeGreaterThan(1);
  });
});
