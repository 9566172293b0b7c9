/** `substrate init` where it must not write, or must not claim that an agent is connected. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { InitPlace } from "../support/broker/init-place.ts";
import { runAtTerminal, whenShown } from "../support/programs/at-terminal.ts";
import { actors } from "../support/users/users.ts";

const CLAUDE = `{
\t"hooks": {
\t\t"PreToolUse": [
\t\t\t{ "matcher": "Write", "hooks": [{ "type": "command", "command": "mine" }] }
\t\t]
\t}
}`;

describe.each(actors())("init refuses, as $kind", (actor) => {
  let place: InitPlace;
  beforeAll(async () => {
    place = await InitPlace.start(actor);
  });
  afterAll(() => place.stop());
  beforeEach(() => place.open());
  afterEach(() => place.close());

  const init = (...args: Parameters<InitPlace["init"]>): ReturnType<InitPlace["init"]> => place.init(...args);

  test.each([
    [
      "a link out of the home",
      (path: string) => symlinkSync("../../elsewhere.json", path),
      "elsewhere.json', outside of '",
    ],
    ["a link to nothing", (path: string) => symlinkSync("nowhere", path), "a link to nothing"],
    ["a folder", (path: string) => mkdirSync(path), "it is not a file"],
    ["a pipe", (path: string) => execFileSync("mkfifo", [path]), "it is not a file"],
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
    place.folder.write("elsewhere.json", "{}");
    mkdirSync(join(place.home, ".claude"));
    make(join(place.home, ".claude/settings.json"));
    place.folder.own();
    const before = place.snapshot();
    const { code, stderr } = await init(["claude-code", "--yes"]);
    expect([code, stderr]).toEqual([125, expect.stringContaining(why)]);
    expect(place.snapshot()).toEqual(before);
    expect(existsSync(place.config)).toBe(false);
    expect(readFileSync(join(place.folder.path, "elsewhere.json"), "utf8")).toBe("{}");
    expect((await init(["--json"])).stdout).not.toContain(place.home + "/.claude/settings.json");
  });

  test.each([
    ["TOML", ".codex/config.toml", "a = 1\na = 2\n", "line 2, column 1"],
    ["config.yaml", undefined, "agents: [a]\n", "config.yaml:1:1"],
    ["YAML", ".aider.conf.yml", "a: 1\na: 2\n", "line 2, column 1"],
    ["another shell", ".aider.conf.yml", "set-env:\n  - SHELL=/bin/zsh\n", 'has "SHELL=/bin/zsh": remove'],
    ["a list on one line", ".aider.conf.yml", "set-env: [A=b]\n", "give each item a line"],
    ["hooks of another shape", ".cursor/hooks.json", '{"hooks": []}', "is not an object"],
  ])(
    "broken or strange: %s is refused before the first file is written",
    async (_what, name, text, where) => {
      if (name !== undefined) place.put(name, text);
      else place.broker.write(place.config, text);
      const before = place.snapshot();
      const agent = name === undefined ? "codex" : (/^\.(aider|cursor|codex)/.exec(name)?.[1] ?? "");
      const { code, stderr } = await init([agent, "--yes"]);
      expect([code, stderr]).toEqual([125, expect.stringContaining(where)]);
      expect(place.snapshot()).toEqual(before);
    },
  );

  test.each([
    ["claude-code", ".claude/settings.json", "a link into the home", "../../home/victim.json"],
    ["claude-code", ".claude", "a link into the home, for the folder", "../home/victim"],
    ["codex", ".codex/hooks.json", "an endless device", "/dev/zero"],
    ["copilot", ".github/hooks", "what is no folder", "/dev/zero"],
    ["opencode", ".opencode", "what is no folder", "/dev/zero"],
  ])(
    "of a cloned repository: %s with %s as %s is left alone with --project",
    async (agent, name, _what, to) => {
      const { project } = place.broker;
      const victims = [place.put("victim.json", "{}"), place.put("victim/settings.json", "{}")];
      const path = join(project, name);
      mkdirSync(dirname(path), { recursive: true });
      symlinkSync(to.startsWith("/") ? to : join(project, to.replace(/^(\.\.\/)+home/, place.home)), path);
      try {
        const { code, stderr } = await init([agent, "--project", "--yes"]);
        expect([code, stderr]).toEqual([125, expect.stringMatching(/^substrate: Cannot use '.*'.*\n$/)]);
        for (const victim of victims) expect(readFileSync(victim, "utf8")).toBe("{}");
      } finally {
        rmSync(join(project, name.split("/")[0] ?? ""), { recursive: true });
      }
    },
  );

  test("a cloned repository's settings that are only looked at are passed over where they are no file", async () => {
    const { project } = place.broker;
    place.broker.write(join(project, ".codex/other"), "");
    symlinkSync("/dev/zero", join(project, ".codex/config.toml"));
    try {
      expect(await init(["codex", "--project", "--yes"])).toMatchObject({ code: 0, stderr: "" });
      expect(await init(["codex", "--project", "--undo"])).toMatchObject({ code: 0 });
    } finally {
      rmSync(join(project, ".codex"), { recursive: true });
    }
  });

  test("without a terminal and without --yes the changes are shown and not written", async () => {
    place.put(".claude/settings.json", CLAUDE);
    const before = place.snapshot();
    const { code, stdout, stderr } = await init(["claude-code"]);
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining("Nothing was written: there is nobody to ask"),
    ]);
    expect(stdout).toContain("+  claude-code: { policy: claude-code }\n");
    expect(stdout).toContain('-\t\t\t{ "matcher": "Write"');
    expect(place.snapshot()).toEqual(before);
    expect(existsSync(place.config)).toBe(false);
  });

  test.each([
    ["y\r", 0],
    ["n\r", 1],
    ["\r", 1],
  ])("at a terminal a person is asked: %j", async (typed, wanted) => {
    const { node, launcher } = place.installation;
    const change =
      process.getuid?.() === actor.uid
        ? []
        : ["setpriv", `--reuid=${actor.uid}`, `--regid=${actor.gid}`, "--clear-groups"];
    const argv = [...change, node, launcher, "init", "claude-code"];
    const env = { PATH: "/usr/bin:/bin", HOME: place.home, TERM: "dumb", SUBSTRATE_HOME: place.broker.home };
    const { code, text } = await runAtTerminal(
      argv,
      { cwd: place.broker.project, env },
      whenShown("[n]", ({ type }) => type(typed)),
    );
    expect([code, text]).toEqual([wanted, expect.stringContaining("Write it? y)es [n]")]);
    expect(existsSync(join(place.home, ".claude/settings.json"))).toBe(wanted === 0);
  });

  test.each([
    ["broken", "gives no answer that the agent understands (should be denied)"],
    ["open", "allowed, and runs as (should be denied)"],
    ["closed", "denied (should be allowed)"],
  ])("a hook that is %s fails the proof, and the way back is named", async (answer, words) => {
    for (const agent of ["claude-code", "gemini", "opencode", "cursor", "copilot", "aider"]) {
      const { code, stdout, stderr } = await init([agent, "--yes"], { STAND_IN: answer });
      const asPlugin = agent === "opencode" && answer === "broken" ? "denied (should be allowed)" : words;
      // A shell that says nothing ran the command, as far as anybody sees.
      const asShell = answer === "closed" ? words : "allowed, and says (should be denied)";
      expect([agent, code, stdout]).toEqual([
        agent,
        1,
        expect.stringContaining(agent === "aider" ? asShell : asPlugin),
      ]);
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
    ["cursor", ".cursor/hooks.json", '{"hooks": {}}', 'has no "version": 1'],
    ["cursor", ".cursor/hooks.json", '{"version": 1, // c\n"hooks": {}}', "because of a comment"],
    ["copilot", ".copilot/settings.json", '{"disableAllHooks": true}', "sets disableAllHooks"],
  ])("%s is not called connected where %s is %j", async (agent, name, text, why) => {
    place.put(name, text);
    const { code, stderr } = await init([agent, "--yes"]);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/does not ask Substrate yet: /)]);
    expect(stderr).toContain(why);
    expect((await init([agent, "--undo"])).code).toBe(0);
    expect(place.read(name)).toBe(text);
  });

  test.each([
    [["claude"], "Unknown agent 'claude'"],
    [["copilot-cli"], "claude-code, codex, gemini, opencode, cursor, copilot and aider"],
    [["--undo"], "needs an agent"],
  ])("%j is refused in words", async (words, why) => {
    const { code, stderr } = await init(words);
    expect([code, stderr]).toEqual([125, expect.stringContaining(why)]);
  });

  test("inside a world nobody connects an agent", async () => {
    const words = [
      "exec",
      "--",
      place.installation.node,
      place.installation.launcher,
      "init",
      "claude-code",
      "--yes",
    ];
    const { code, stderr } = await place.broker.cli(words);
    expect([code, stderr]).toEqual([
      125,
      expect.stringContaining("Cannot run 'substrate init' inside a world"),
    ]);
  });
});
