/** Events of coding agents that are recorded: through the installed hooks, both fronts, and the trace that they leave. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AgentSession, ExecuteReply, SessionsReply, Span } from "../../schemas/generated/types.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { installationFor } from "../support/broker/installation.ts";
import { HOOK_POLICY } from "../support/front/hook-cases.ts";
import { HomeFolder } from "../support/users/folders.ts";
import { actors, type Ended, runAs } from "../support/users/users.ts";

const SECRET = "hunter2-is-my-password";
const PROMPT = `Log in with ${SECRET} — and "push" it`;
const TOKEN = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

type Told = readonly [name: string, fields?: object];

const tool = (name: string, input: object, use?: string): object => ({
  tool_name: name,
  tool_input: input,
  tool_response: { stdout: SECRET },
  ...(use === undefined ? {} : { tool_use_id: use }),
});

const CLAUDE: readonly Told[] = [
  ["SessionStart", { source: "startup", model: "opus" }],
  ["UserPromptSubmit", { prompt: PROMPT }],
  ["PostToolUse", tool("Read", { file_path: `/src/${TOKEN}.ts` }, "toolu_1")],
  ["Stop", { stop_hook_active: false, last_assistant_message: SECRET }],
  ["SessionEnd", { reason: "prompt_input_exit" }],
];

const SETTINGS: readonly (readonly [agent: string, file: string, events: readonly Told[]])[] = [
  ["claude-code", ".claude/settings.json", CLAUDE],
  ["codex", ".codex/hooks.json", CLAUDE],
  [
    "gemini",
    ".gemini/settings.json",
    [
      ["SessionStart", { source: "startup" }],
      ["BeforeAgent", { prompt: PROMPT }],
      ["AfterTool", tool("replace", { file_path: `/src/${TOKEN}.ts` })],
      ["AfterAgent", { prompt: PROMPT, prompt_response: SECRET }],
      ["SessionEnd", { reason: "exit" }],
    ],
  ],
];

type Installed = {
  readonly hooks: Readonly<
    Record<string, readonly [{ readonly hooks: readonly [{ readonly command: string }] }]>
  >;
};

/** Has the plugin see a whole session. */
const PLUGIN = `
const [file, directory, prompt, path] = process.argv.slice(1);
const [plugin] = Object.values(await import(file));
const hooks = await plugin({ directory, worktree: directory });
const session = (type) => hooks.event({ event: { type, properties: { sessionID: "ses_1", info: { id: "ses_1" } } } });
await session("session.created");
await hooks["chat.message"]({ sessionID: "ses_1" }, { message: {}, parts: [{ type: "text", text: prompt }] });
await hooks["tool.execute.after"]({ tool: "read", sessionID: "ses_1", callID: "c1", args: { filePath: path } }, {});
await session("session.idle");
await session("session.deleted");
await session("session.of-a-later-version");
`;

describe.each(actors())("recorded events of agents, as $kind", (actor) => {
  let broker: TestBroker;
  let person: HomeFolder;
  let fronts: readonly (readonly string[])[] = [];
  beforeAll(async () => {
    const { root, node, launcher } = await installationFor(actor);
    fronts = [[join(root, ".build/substrate")], [node, launcher]];
    broker = await TestBroker.start(actor, { policies: { default: HOOK_POLICY } });
    person = new HomeFolder(actor);
    for (const agent of ["claude-code", "codex", "gemini", "opencode"]) {
      const { code, stdout, stderr } = await broker.cli(["init", agent, "--yes"], {
        env: { HOME: person.path },
      });
      if (code !== 0) throw new Error(`Expected '${agent}' to be connected: ${stdout}${stderr}`);
    }
  });
  afterAll(async () => {
    person.remove();
    await broker.stop();
  });

  function run(words: readonly string[], stdin = ""): Promise<Ended> {
    return runAs(actor, words, { cwd: broker.project, env: { SUBSTRATE_HOME: broker.home }, stdin });
  }

  const eventOf = (session: string, [name, fields = {}]: Told): string =>
    JSON.stringify({
      session_id: session,
      transcript_path: "/t.jsonl",
      cwd: broker.project,
      hook_event_name: name,
      ...fields,
    });

  const tell = (session: string, told: Told, front = fronts[0] ?? []): Promise<Ended> =>
    run([...front, "hook", "claude-code"], eventOf(session, told));

  const spansOf = (agent: string, key: string): readonly Span[] =>
    broker.spans().filter((span) => span.agent_id === agent && span.agent_event?.session_key === key);

  async function session(key: string): Promise<AgentSession> {
    const reply = await broker.operator("GET", `/v1/sessions?session_key=${key}`);
    const { sessions } = reply.document as SessionsReply;
    if (sessions[0] === undefined) throw new Error(`Expected the session '${key}', received none`);
    return sessions[0];
  }

  /** What every agent's session leaves: a prompt without its text, a path without its credential, and who is below whom. */
  function expectWhole(spans: readonly Span[], use: string | undefined): void {
    const [start, prompt, ended, stop, end] = spans;
    expect(spans.map(({ agent_event: told }) => told?.event)).toEqual([
      "session_start",
      "prompt",
      "tool",
      "stop",
      "session_end",
    ]);
    expect(prompt?.agent_event?.prompt).toEqual({
      bytes: Buffer.byteLength(PROMPT),
      sha256: createHash("sha256").update(PROMPT).digest("hex"),
    });
    expect(ended?.agent_event).toMatchObject(use === undefined ? {} : { tool_use_id: use });
    expect(ended?.agent_event?.files).toHaveLength(1);
    expect(ended?.redacted.map(({ place }) => place)).toEqual(["agent_event"]);
    const [first, second] = [start?.span_id, prompt?.span_id];
    expect([start, prompt, ended, stop, end].map((span) => span?.parent_span)).toEqual([
      null,
      first,
      second,
      second,
      first,
    ]);
    expect(new Set(spans.map(({ session_id: id }) => id)).size).toBe(1);
    const written = readFileSync(join(broker.home, "trace/trace.jsonl"), "utf8");
    for (const kept of [SECRET, TOKEN]) expect(written).not.toContain(kept);
  }

  test.each(SETTINGS)("%s: the hooks in %s record a session", async (agent, file, events) => {
    const { hooks } = JSON.parse(readFileSync(join(person.path, file), "utf8")) as Installed;
    for (const told of events) {
      const command = hooks[told[0]]?.[0].hooks[0].command ?? "";
      expect(await run(["sh", "-c", command], eventOf("installed", told))).toMatchObject({
        code: 0,
        stdout: "",
        stderr: "",
      });
    }
    expectWhole(spansOf(agent, "installed"), agent === "gemini" ? undefined : "toolu_1");
  });

  test("opencode: the plugin records a session", async () => {
    const file = join(person.path, ".config/opencode/plugins/substrate.js");
    const words = ["--input-type=module", "--eval", PLUGIN, pathToFileURL(file).href, broker.project];
    const [, [node = ""] = []] = fronts;
    expect(await run([node, ...words, PROMPT, `/src/${TOKEN}.ts`])).toMatchObject({ code: 0, stderr: "" });
    expectWhole(spansOf("opencode", "ses_1"), "c1");
  });

  test("both fronts record alike", async () => {
    const facts = ({ agent_event: { session_key: _key, ...told } = {} as never, ...span }: Span): object => ({
      ...told,
      cwd: span.cwd,
      redacted: span.redacted,
    });
    const odd: readonly Told[] = [
      ...CLAUDE,
      ["UserPromptSubmit", { prompt: "\u{1F600} \ud800 \u0000 ä" }],
      ["UserPromptSubmit", {}],
      ["PostToolUse", tool("apply_patch", { command: "*** Add File: a\n*** Delete File: b c \n" })],
      ["PostToolUse", tool("Bash", { command: "true" })],
      ["PostToolUse", tool("mcp__x__y", { file_path: 7 })],
      ["SessionStart", { source: 7 }],
    ];
    for (const [at, front] of fronts.entries())
      for (const told of odd)
        expect(await tell(`front-${at}`, told, front)).toMatchObject({ code: 0, stdout: "", stderr: "" });
    const [native = [], node = []] = [0, 1].map((at) => spansOf("claude-code", `front-${at}`).map(facts));
    expect(native).toHaveLength(odd.length);
    expect(native).toEqual(node);
  });

  test("commands, denials and files stand below the prompt of their session, and of no other", async () => {
    await tell("two", ["SessionStart", { source: "startup" }]);
    await tell("one", ["SessionStart", { source: "startup" }]);
    await tell("one", ["UserPromptSubmit", { prompt: "a" }]);
    const call = (cmd: string, key: string): Promise<Ended> =>
      run([
        ...(fronts[0] ?? []),
        "exec",
        "--agent",
        "claude-code",
        "--session",
        key,
        "--shell",
        "sh",
        "--",
        cmd,
      ]);
    expect(await call("echo one", "one")).toMatchObject({ code: 0, stdout: "one\n" });
    expect(await call("echo two", "two")).toMatchObject({ code: 0, stdout: "two\n" });
    const denied = await tell("one", ["PreToolUse", tool("Read", { file_path: "~/.ssh/id_rsa" })]);
    expect(denied.stdout).toContain('"deny"');
    await tell("one", ["PostToolUse", tool("Write", { file_path: "a.ts" })]);
    // A beginning that an agent tells when it compacts a session takes no command from its prompt.
    await tell("one", ["SessionStart", { source: "compact" }]);
    expect(await call("echo again; false", "one")).toMatchObject({ code: 1 });
    const prompt = spansOf("claude-code", "one")[1]?.span_id ?? "";
    const reply = await broker.operator("GET", `/v1/trace/${prompt}`);
    const { children } = reply.document as { readonly children: readonly Span[] };
    expect(children.map(({ cmd, event_type: type, agent_event: told }) => cmd ?? told?.tool ?? type)).toEqual(
      ["echo one", "violation", "Write", "echo again; false"],
    );
    expect(await session("one")).toMatchObject({
      commands: 2,
      last_command: { cmd: "echo again; false", exit: 1, outcome: "ended" },
      ended_at: null,
    });
    const two = broker.spans().find(({ cmd, exit }) => cmd === "echo two" && exit === 0);
    expect(two?.parent_span).toBe(spansOf("claude-code", "two")[0]?.span_id);
    const shown = await broker.cli(["trace", "--session", "one"]);
    expect(shown.stdout).toMatch(
      /^claude-code {2}one, began .* 2 commands, the last 'echo again; false', no end told\n/,
    );
    expect(shown.stdout).toMatch(/\n {6}\S+ {2}\S+ {2}allow {2}exit 0 {2}claude-code {2}echo one\n/);
    expect(shown.stdout).not.toContain("echo two");
    expect((await broker.cli(["trace", "list", "--session", "two"])).stdout.split("\n")).toHaveLength(3);
  });

  test("a session in two projects is one, also after the broker's end, and goes on when its agent resumes it", async () => {
    const other = join(broker.project, "../other");
    broker.write(join(other, ".git/HEAD"), "ref: refs/heads/main\n");
    await tell("long", ["SessionStart", { source: "startup" }]);
    await tell("long", ["UserPromptSubmit", { prompt: "a" }]);
    await tell("long", ["SessionEnd", { reason: "other" }]);
    const { began_at: began, ended_at: ended } = await session("long");
    expect(ended).not.toBeNull();
    await broker.kill("SIGTERM");
    broker = await broker.again();
    expect(await session("long")).toMatchObject({ began_at: began, ended_at: ended, commands: 0 });
    await tell("long", ["SessionStart", { source: "resume" }]);
    const start = spansOf("claude-code", "long").at(-1)?.span_id;
    const body = { agent_id: "claude-code", cmd: "echo elsewhere", cwd: other, session_key: "long" };
    const ran = async (call: object): Promise<string | undefined> =>
      ((await broker.operator("POST", "/v1/execute", call)).document as Partial<ExecuteReply>).span_id;
    const span = await ran(body);
    expect(broker.spans().find(({ span_id: id }) => id === span)?.parent_span).toBe(start);
    expect(await session("long")).toMatchObject({ began_at: began, ended_at: null, commands: 1 });
    expect((await session("long")).session_ids).toHaveLength(2);
    // A parent that the caller names stays.
    const own = await ran({ ...body, parent_span: start });
    await tell("long", ["UserPromptSubmit", { prompt: "b" }]);
    const named = await ran({ ...body, parent_span: own });
    expect(broker.spans().find(({ span_id: id }) => id === named)?.parent_span).toBe(own);
  });

  test.each<{ what: string; told: object; says: string }>([
    { what: "a folder that is no path", told: { cwd: "here" }, says: "'cwd' must be an absolute path" },
    { what: "a reason that is too long", told: { source: "x".repeat(200) }, says: "reason" },
  ])("an event with $what is not recorded, and stops nothing", async ({ told, says }) => {
    for (const front of fronts) {
      const ended = await tell("odd", ["SessionStart", told], front);
      expect([ended.code, ended.stdout]).toEqual([0, ""]);
      expect(ended.stderr).toMatch(/^substrate: .*\. The event is not recorded\n$/);
      expect(ended.stderr).toContain(says);
    }
    expect(spansOf("claude-code", "odd")).toEqual([]);
  });

  test("the installed hook stops nothing without its program, nor by an event that cannot be read", async () => {
    const { hooks } = JSON.parse(
      readFileSync(join(person.path, ".claude/settings.json"), "utf8"),
    ) as Installed;
    const command = hooks["UserPromptSubmit"]?.[0].hooks[0].command ?? "";
    expect(await run(["sh", "-c", command], "{")).toMatchObject({ code: 0, stdout: "" });
    const gone = command.replace("/.build/substrate'", "/.build/gone'");
    expect(await run(["sh", "-c", gone], "{}")).toMatchObject({ code: 0, stdout: "" });
    const asks = hooks["PreToolUse"]?.[0].hooks[0].command ?? "";
    expect(await run(["sh", "-c", asks], "{")).toMatchObject({ code: 2, stdout: "" });
  });

  test("status and the list show a session", async () => {
    await tell("shown", ["SessionStart", { source: "startup" }]);
    await tell("shown", ["UserPromptSubmit", { prompt: "a" }]);
    await tell("shown", ["SessionEnd", { reason: "other" }]);
    expect((await broker.cli(["status"])).stdout).toMatch(
      /\n +session shown, began \d+ s ago, last prompt \d+ s ago, 0 commands, ended \d+ s ago\n/,
    );
    const listed = JSON.parse(
      (await broker.cli(["trace", "sessions", "--agent", "claude-code", "--json"])).stdout,
    ) as SessionsReply;
    expect(listed.sessions[0]).toEqual(await session("shown"));
    expect((await broker.cli(["trace", "sessions", "-n", "1"])).stdout).toMatch(
      /^claude-code {2}shown, .*\n$/,
    );
    expect(await broker.cli(["trace", "--session", "never"])).toMatchObject({ code: 125 });
  });
});
