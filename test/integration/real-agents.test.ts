/** Claude Code, Codex and GitHub Copilot CLI themselves, connected by `substrate init`, at a whole task that a scripted model dictates. */
import { createHash } from "node:crypto";
import { existsSync, readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import type { AgentSession, Approval } from "../../schemas/generated/types.ts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Person } from "../support/broker/approvals.ts";
import { eventually, TestBroker } from "../support/broker/broker.ts";
import { hostGit } from "../support/git/git.ts";
import { agentProgram, notInstalled } from "../support/programs/agents.ts";
import { ScriptedModel, type Step } from "../support/programs/scripted-model.ts";
import { skip } from "../support/run/skips.ts";
import { HomeFolder } from "../support/users/folders.ts";
import { actors, runAs } from "../support/users/users.ts";

const CLAUDE = "@anthropic-ai/claude-code@2.1.197";
const CODEX = "@openai/codex@0.169.0";
const COPILOT = "@github/copilot@1.0.102";

/** Which agent the command belongs to, and in which namespace of processes it runs. */
const WHERE = "echo $SUBSTRATE_AGENT_ID in $(readlink /proc/self/ns/pid)";
const EDIT = "sed -i s/3/2/ sum.js";
const INSTALL = "npm install ./vendor/greet";
const COMMIT = "git add . && git commit -qm 'Mend the sum'";
const PUSH = "git push origin main";

type StatusDocument = {
  readonly connected: readonly { readonly agent_id: string; readonly session: AgentSession | null }[];
};
/** 100 KB, with quotes of every kind and a here-document. */
const LONG_TEXT = `${`it's "$HOME" \`x\` \\n\n`.repeat(100)}${"0123456789\n".repeat(9000)}`;
const LONG = `sha256sum <<'END'\n${LONG_TEXT}END`;

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** A step that runs a command with the agent's own tool. */
type Run = (command: string, before?: Step[2]) => Step;

describe.each(actors())("whole tasks of real agents, as $kind", (actor) => {
  let broker: TestBroker;
  let person: HomeFolder;
  let hostPids: string;
  beforeEach(async () => {
    broker = await TestBroker.start(actor);
    person = new HomeFolder(actor);
    hostPids = (await runAs(actor, ["readlink", "/proc/self/ns/pid"])).stdout.trim();
    const { project } = broker;
    const test = 'test "$(node -p \'require("greet")\')" = hello && node sum.js';
    broker.write(join(project, "package.json"), JSON.stringify({ name: "task", scripts: { test } }));
    broker.write(join(project, "sum.js"), "if (1 + 1 !== 3) process.exit(1);\n");
    broker.write(join(project, "vendor/greet/package.json"), '{ "name": "greet", "version": "1.0.0" }');
    broker.write(join(project, "vendor/greet/index.js"), 'module.exports = "hello";\n');
    broker.write(join(project, ".gitignore"), "node_modules\nremote.git\n");
    const git = (...words: readonly string[]): string => hostGit(actor, project, ...words);
    git("init", "-q", "--initial-branch=main");
    git("config", "user.name", "Tester");
    git("config", "user.email", "tester@example.org");
    git("init", "-q", "--bare", "--initial-branch=main", "remote.git");
    git("remote", "add", "origin", join(project, "remote.git"));
    git("add", ".");
    git("commit", "-q", "-m", "A first commit");
  });
  afterEach(async () => {
    person.remove();
    await broker.stop();
  });

  function programOf(name: string, wanted: string): string {
    const program = agentProgram(name);
    if (program === undefined) skip(`a whole task of ${name}`, notInstalled(name, wanted));
    return realpathSync(program ?? "");
  }

  const environment = (): Record<string, string> => ({
    SUBSTRATE_HOME: broker.home,
    HOME: person.path,
    GIT_CONFIG_NOSYSTEM: "1",
  });

  async function connect(agent: string): Promise<void> {
    const { code, stdout, stderr } = await broker.cli(["init", agent, "--yes"], {
      env: { HOME: person.path },
    });
    expect(code, `${stdout}${stderr}`).toBe(0);
  }

  const apply = async (): Promise<void> => {
    // What was installed and never looked at is not there yet.
    expect(readFileSync(join(broker.project, "package.json"), "utf8")).not.toContain("dependencies");
    expect(existsSync(join(broker.project, "node_modules"))).toBe(false);
    expect(await broker.cli(["apply", "last"])).toMatchObject({ code: 0 });
  };

  /** The steps after the edit; `run` uses the agent's own tool for commands. */
  const task = (run: Run): readonly Step[] => [
    run(INSTALL),
    run("npm test", apply),
    run(WHERE),
    run("sudo -n true; touch denied"),
    run(COMMIT),
  ];

  function expectDone(agent: string, model: ScriptedModel, commands: readonly unknown[]): void {
    const told = model.results.join("\n");
    expect(told).toMatch(new RegExp(`${agent} in pid:\\[\\d+\\]`));
    expect(told).not.toContain(hostPids);
    expect(told).toContain("Commands run with the rights of the user, never with more");
    expect(told).toContain("next     do the task another way");
    const { project } = broker;
    expect(existsSync(join(project, "denied"))).toBe(false);
    expect(existsSync(join(person.path, ".npm"))).toBe(false);
    expect(readFileSync(join(project, "sum.js"), "utf8")).toContain("!== 2");
    for (const place of [project, join(project, "remote.git")])
      expect(hostGit(actor, place, "log", "--format=%s", "main"), told).toBe("Mend the sum\nA first commit");
    expect(hostGit(actor, project, "show", "--stat", "--format=")).toContain("package-lock.json");
    const ended = broker.spans().filter(({ event_type: type }) => type === "command_complete");
    expect(ended.map(({ agent_id: id, cmd }) => [id, cmd])).toEqual(
      commands.map((command) => [agent, command]),
    );
  }

  /** The trace holds one session, from start to end, with the commands and the denial below its prompt. */
  async function expectSession(agent: string, commands: readonly string[]): Promise<void> {
    const spans = broker.spans().filter(({ agent_id: id }) => id === agent);
    const told = spans.filter(({ event_type: type }) => type === "agent");
    const kinds = told.map(({ agent_event: event }) => event?.event);
    const span = (kind: string): string | undefined => told[kinds.indexOf(kind as never)]?.span_id;
    expect(kinds.filter((kind) => kind !== "tool")).toEqual([
      "session_start",
      "prompt",
      "stop",
      "session_end",
    ]);
    const prompt = told[kinds.indexOf("prompt")];
    expect(prompt?.agent_event?.prompt).toEqual({ bytes: 2, sha256: sha256("go") });
    expect([prompt?.parent_span, told.at(-1)?.parent_span]).toEqual([
      span("session_start"),
      span("session_start"),
    ]);
    const below = (type: string): readonly unknown[] =>
      spans.filter((each) => each.event_type === type && each.parent_span === prompt?.span_id);
    expect(below("command_complete")).toHaveLength(commands.length);
    expect(below("violation")).not.toHaveLength(0);
    const keys = new Set(told.map(({ agent_event: event }) => event?.session_key));
    expect([keys.size, new Set(told.map(({ session_id: id }) => id)).size]).toEqual([1, 1]);
    const [key = ""] = keys;
    const { stdout } = await broker.cli(["trace", "--session", key ?? ""]);
    expect(stdout).toContain(`${commands.length} commands, the last '${commands.at(-1)}', ended `);
    const status = JSON.parse((await broker.cli(["status", "--json"])).stdout) as StatusDocument;
    const [session] = status.connected.flatMap((each) => (each.agent_id === agent ? [each.session] : []));
    expect(session).toMatchObject({ session_key: key, commands: commands.length, prompted_at: prompt?.ts });
    expect([session?.began_at, session?.ended_at]).toEqual([told[0]?.ts, told.at(-1)?.ts]);
  }

  test("Claude Code edits, installs, tests, commits and pushes in worlds", async () => {
    const claude = programOf("claude", CLAUDE);
    await connect("claude-code");
    const run: Run = (command, before) => ["Bash", { command, description: "A step" }, before];
    const file_path = join(broker.project, "sum.js");
    await using model = await ScriptedModel.start([
      ["Read", { file_path: join(actor.home, ".ssh/id_rsa") }],
      ["Read", { file_path }],
      ["Edit", { file_path, old_string: "3", new_string: "2" }],
      ...task(run),
      run(PUSH),
    ]);
    const words = ["-p", "go", "--permission-mode", "acceptEdits"];
    const running = runAs(actor, [claude, ...words], {
      cwd: broker.project,
      env: {
        ...environment(),
        ANTHROPIC_API_KEY: "made-up",
        ANTHROPIC_BASE_URL: model.url,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      },
    });
    const [{ stdout, stderr }] = await Promise.all([running, answerPush(broker, running)]);
    expect(stdout, stderr).toContain("Done");
    expect(model.results, model.results.join("\n")).toHaveLength(9);
    expect(model.results[0]).toContain("in fs.deny_read");
    const commands = [INSTALL, "npm test", WHERE, COMMIT, PUSH];
    expectDone("claude-code", model, commands);
    await expectSession("claude-code", commands);
  }, 120_000);

  test("GitHub Copilot CLI edits, installs, tests, commits and pushes in worlds", async () => {
    const copilot = programOf("copilot", COPILOT);
    await connect("copilot");
    const run: Run = (command, before) => [
      "bash",
      { command, description: "A step", mode: "sync", initial_wait: 120 },
      before,
    ];
    const path = join(broker.project, "sum.js");
    await using model = await ScriptedModel.start([
      ["view", { path: join(actor.home, ".ssh/id_rsa") }],
      ["view", { path }],
      ["edit", { path, old_str: "3", new_str: "2" }],
      ...task(run),
      run(LONG),
      run(PUSH),
    ]);
    const running = runAs(actor, [process.execPath, copilot, "-p", "go", "--allow-all"], {
      cwd: broker.project,
      env: {
        ...environment(),
        COPILOT_OFFLINE: "true",
        COPILOT_AUTO_UPDATE: "false",
        COPILOT_MODEL: "claude-sonnet-4.6",
        COPILOT_PROVIDER_TYPE: "anthropic",
        COPILOT_PROVIDER_BASE_URL: model.url,
        COPILOT_PROVIDER_API_KEY: "made-up",
      },
    });
    const [{ stdout, stderr }] = await Promise.all([running, answerPush(broker, running)]);
    expect(stdout, stderr).toContain("Done");
    expect(model.results, model.results.join("\n")).toHaveLength(10);
    expect(model.results[0]).toContain("fs.deny_read");
    expect(model.results[8]).toContain(sha256(LONG_TEXT));
    const long: unknown = expect.stringMatching(/^sha256sum .*\[cut: 1\d{5} characters/s);
    expectDone("copilot", model, [INSTALL, "npm test", WHERE, COMMIT, long, PUSH]);
  }, 120_000);

  test.each([
    ["whose tools are functions", ["-m", "gpt-5"]],
    ["that calls its tools in JavaScript", ["-m", "gpt-6.1-sol"]],
  ])(
    "Codex edits, installs, tests, commits and pushes in worlds, with a model %s",
    async (_, choice) => {
      const codex = programOf("codex", CODEX);
      await connect("codex");
      const run: Run = (cmd, before) => ["exec_command", { cmd, yield_time_ms: 30_000 }, before];
      await using model = await ScriptedModel.start([run(EDIT), ...task(run), run(PUSH)]);
      const provider = `{ name = "x", base_url = "${model.url}/v1", wire_api = "responses" }`;
      // A person trusts the hook, then has `init` switch Codex's sandbox off: here two options say so for one run.
      const trusted = ["--dangerously-bypass-hook-trust", "--sandbox", "danger-full-access"];
      const words = [
        ...trusted,
        "-c",
        `model_providers.x=${provider}`,
        "-c",
        'model_provider="x"',
        ...choice,
        "go",
      ];
      const running = runAs(actor, [process.execPath, codex, "exec", ...words], {
        cwd: broker.project,
        env: environment(),
      });
      const [{ stdout, stderr }] = await Promise.all([running, answerPush(broker, running)]);
      expect(stdout, stderr).toContain("Done");
      expect(model.results, stderr).toHaveLength(7);
      const commands = [EDIT, INSTALL, "npm test", WHERE, COMMIT, PUSH];
      expectDone("codex", model, commands);
      await expectSession("codex", commands);
    },
    120_000,
  );
});

/** Answers the push, which waits because no agent can ask here (`claude -p`, Codex's hooks); gives up when the agent has ended. */
async function answerPush(broker: TestBroker, running: Promise<unknown>): Promise<void> {
  const person = new Person(broker);
  let isOver = false;
  void running.finally(() => {
    isOver = true;
  });
  const waiting = async (): Promise<readonly Approval[]> =>
    (await person.list()).approvals.filter((each) => each.waiting > 0);
  await eventually(async () => isOver || (await waiting()).length > 0, 60_000);
  for (const { approval_id: id } of await waiting()) await person.answer(id, "once");
}
