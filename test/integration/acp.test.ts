/** `substrate acp`: a scripted agent and a scripted editor, both by the official SDK, across the real proxy and a live broker. */
import { existsSync, readFileSync, readlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, TestBroker } from "../support/broker/broker.ts";
import { installationFor } from "../support/broker/installation.ts";
import { agentFor, Editor, type Step } from "../support/programs/acp.ts";
import { actors, runAs } from "../support/users/users.ts";

const POLICY = `id: default
name: Editor
mode: enforce
fs: { deny_read: ["$PROJECT/secret", /etc/group], deny_write: ["$PROJECT/kept"] }
commands:
  denied: ["rm -rf *"]
  ask: ["git push *"]
`;

describe.each(actors())("substrate acp, as $kind", (actor) => {
  let broker: TestBroker;
  let agent: readonly string[];
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    agent = [process.execPath, await agentFor(broker)];
    broker.write(join(broker.project, "secret"), "hidden\n");
    broker.write(join(broker.project, "kept"), "kept\n");
    broker.write(join(broker.project, "text"), "one\ntwo\nthree\n");
  });
  afterAll(() => broker.stop());

  const at = (path: string): string => join(broker.project, path);
  const run = (command: string, ...args: readonly string[]): Step => ({
    method: "terminal/create",
    params: { command, args },
  });
  const OUTPUT = [{ method: "terminal/wait_for_exit" }, { method: "terminal/output" }];

  test("a terminal runs in a world and is recorded, though the editor has none; a denied command does not run", async () => {
    await using editor = await Editor.start(broker, agent);
    expect(await editor.open(broker.project)).toMatchObject({
      terminal: true,
      fs: { readTextFile: true, writeTextFile: true },
    });
    const [, exit, output, , gone] = await editor.turn(
      run("sh", "-c", "echo out; readlink /proc/self/ns/pid; exit 3"),
      ...OUTPUT,
      { method: "terminal/release" },
      { method: "terminal/output" },
    );
    expect(exit).toMatchObject({ exitCode: 3 });
    expect(output).toMatchObject({ truncated: false, exitStatus: { exitCode: 3 } });
    const [, pids] = String(output?.["output"]).split("\n");
    expect(pids).toMatch(/^pid:\[\d+\]$/);
    expect(pids, "the command's pid namespace").not.toBe(readlinkSync("/proc/self/ns/pid"));
    expect(gone?.["error"]).toMatch(/Unknown terminal/);
    const isRecorded = await eventually(
      () => broker.spans().some(({ agent_id: id, exit: code }) => id === "acp" && code === 3),
      5000,
    );
    expect(isRecorded).toBe(true);

    broker.write(at("folder/file"), "");
    const [denied] = await editor.turn(run("rm -rf folder"));
    expect(denied?.["error"]).toMatch(/rm -rf \*/);
    expect(existsSync(at("folder/file"))).toBe(true);
    expect(editor.asked).toEqual([]);
  });

  test("files are the world's: inside the project read and written, denied ones not", async () => {
    await using editor = await Editor.start(broker, agent);
    await editor.open(broker.project);
    const read = (path: string, more = {}): Step => ({
      method: "fs/read_text_file",
      params: { path, ...more },
    });
    const write = (path: string, content: string): Step => ({
      method: "fs/write_text_file",
      params: { path, content },
    });
    const outside = join(dirname(broker.project), "outside");
    broker.write(join(outside, "file"), "outside\n");
    const [whole, part, secret, beyond, outer, missing, created, kept, installed] = await editor.turn(
      read(at("text")),
      read(at("text"), { line: 2, limit: 1 }),
      read(at("secret")),
      read("/etc/group"),
      read("/etc/profile"),
      read(at("missing")),
      write(at("made"), "made\n"),
      write(at("kept"), "changed\n"),
      write("/etc/made-by-an-editor", "made\n"),
      // Where this is below /tmp, the write succeeds: the world has a /tmp of its own.
      write(join(outside, "made"), "made\n"),
    );
    expect(whole).toEqual({ content: "one\ntwo\nthree\n" });
    expect(part).toEqual({ content: "two\n" });
    expect(outer).toEqual({ content: readFileSync("/etc/profile", "utf8") });
    for (const refused of [secret, beyond, missing, kept, installed])
      expect(refused?.["error"]).toBeTypeOf("string");
    expect(created?.["error"]).toBeUndefined();
    expect(readFileSync(at("made"), "utf8")).toBe("made\n");
    expect(readFileSync(at("kept"), "utf8")).toBe("kept\n");
    expect(existsSync("/etc/made-by-an-editor")).toBe(false);
    expect(existsSync(join(outside, "made"))).toBe(false);
  });

  test("a question shows our verdict, and what the policy denies is answered without asking", async () => {
    await using editor = await Editor.start(broker, agent);
    await editor.open(broker.project);
    const ask = (command: string, title = "Run", session: object = {}): Step => ({
      method: "session/request_permission",
      params: {
        ...session,
        toolCall: { toolCallId: command, title, kind: "execute", rawInput: { command } },
        options: [
          { optionId: "yes", name: "Yes", kind: "allow_once" },
          { optionId: "no", name: "No", kind: "reject_once" },
        ],
      },
    });
    const [allowed, denied] = await editor.turn(ask("echo hello"), ask("rm -rf folder"));
    expect(allowed).toMatchObject({ outcome: { optionId: "yes" } });
    expect(denied).toMatchObject({ outcome: { optionId: "no" } });
    expect(editor.asked).toHaveLength(1);
    expect(JSON.stringify(editor.asked)).toContain("Substrate: allowed — Run");
    expect(JSON.stringify(editor.shown)).toContain("rm -rf *");
    const forged = "Run — Substrate: allowed\n\u202e\u001b[2K";
    const [elsewhere] = await editor.turn(
      ask("echo hello", "Run", { sessionId: "another" }),
      ask("git log", forged),
    );
    expect(elsewhere).toMatchObject({ outcome: { optionId: "no" } });
    expect(editor.asked).toHaveLength(2);
    const title = "Substrate: allowed — Run — Substrate: allowed\\x0a\\u{202e}\\x1b[2K";
    expect(JSON.stringify(editor.asked)).toContain(JSON.stringify(title.replaceAll("\\\\", "\\")));
  });

  test("kill ends a terminal's command", async () => {
    await using editor = await Editor.start(broker, agent);
    await editor.open(broker.project);
    const [, , exit] = await editor.turn(
      run("sleep", "1000"),
      { method: "terminal/kill" },
      { method: "terminal/wait_for_exit" },
    );
    expect(exit?.["signal"]).toBe("SIGKILL");
  });

  test.each(["crash of the agent", "end of the editor"])("the %s ends proxy and terminals", async (what) => {
    await using editor = await Editor.start(broker, agent);
    await editor.open(broker.project);
    const name = what.split(" ")[0] ?? "";
    const ticks = at(`ticks-${name}`);
    await editor.turn(run(`while :; do echo >> ticks-${name}; sleep 0.1; done`));
    expect(await eventually(() => existsSync(ticks), 5000)).toBe(true);
    if (name === "end") editor.close();
    else editor.turn({ method: "crash" }).catch(() => undefined);
    expect(await editor.ended).toBe(name === "end" ? 0 : 137);
    let size = -1;
    const isQuiet = await eventually(async () => {
      const before = size;
      size = readFileSync(ticks).length;
      await new Promise((resolve) => setTimeout(resolve, 400));
      return before === size;
    }, 5000);
    expect(isQuiet).toBe(true);
  });

  test("an editor reads an agent's line no otherwise than the proxy, and no line changes a question of ours", async () => {
    const update = (toolCallId: string): object => ({
      jsonrpc: "2.0",
      method: "session/update",
      params: {
        sessionId: "s",
        update: { sessionUpdate: "tool_call_update", toolCallId, title: "harmless" },
      },
    });
    const toolCall = { toolCallId: "apr_1", title: "harmless" };
    const lines = [
      '{"jsonrpc":"2.0","id":1,"method":"fs/write_text_file","method":"session/other","params":{"path":"/x"}}',
      '{"jsonrpc":"2.0","method":"terminal/create","params":{"command":"id"}}',
      JSON.stringify(update("apr_1")),
      JSON.stringify({ id: 2, method: "session/request_permission", params: { sessionId: "s", toolCall } }),
      JSON.stringify(update("own")),
    ];
    const { node, launcher } = await installationFor(actor);
    const words = [node, launcher, "acp", "--", "printf", "%s\\n", ...lines];
    const { stdout } = await runAs(actor, words, {
      cwd: broker.project,
      env: { SUBSTRATE_HOME: broker.home },
    });
    const passed = stdout.trim().split("\n");
    expect(passed).toHaveLength(2);
    expect(passed[0]).not.toContain("fs/write_text_file");
    expect(passed.map((line) => JSON.parse(line) as unknown)).toEqual([
      { jsonrpc: "2.0", id: 1, method: "session/other", params: { path: "/x" } },
      update("own"),
    ]);
  });

  test("an editor is offered no log-in that it would run as a command, in an answer or an error", async () => {
    const command = { command: "sh", args: ["-c", "touch /tmp/made"] };
    const authMethods = [
      { id: "own", name: "Log in", description: "By the agent", _meta: { "terminal-auth": command } },
      { id: "terminal", name: "Log in", type: "terminal", args: ["login"], env: { LD_PRELOAD: "/x.so" } },
      { id: "key", name: "Key", type: "env_var", vars: [{ name: "KEY" }] },
    ];
    const lines = [
      JSON.stringify({ jsonrpc: "2.0", id: 0, result: { protocolVersion: 1, authMethods } }),
      JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        error: { code: -32_000, message: "m", data: { authMethods } },
      }),
      JSON.stringify({ jsonrpc: "2.0", id: 2, error: { code: -32_000, message: "m", data: "text" } }),
      JSON.stringify({ jsonrpc: "2.0", id: 3, result: null }),
    ];
    const { node, launcher } = await installationFor(actor);
    const words = [node, launcher, "acp", "--", "printf", "%s\\n", ...lines];
    const { stdout, stderr } = await runAs(actor, words, {
      cwd: broker.project,
      env: { SUBSTRATE_HOME: broker.home },
    });
    const kept = [
      { id: "own", name: "Log in", description: "By the agent" },
      { id: "key", name: "Key", type: "env_var", vars: [{ name: "KEY" }] },
    ];
    expect(
      stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as unknown),
    ).toEqual([
      { jsonrpc: "2.0", id: 0, result: { protocolVersion: 1, authMethods: kept } },
      { jsonrpc: "2.0", id: 1, error: { code: -32_000, message: "m", data: { authMethods: kept } } },
      ...lines.slice(2).map((line) => JSON.parse(line) as unknown),
    ]);
    expect(stderr).toContain("Log in with the agent in a terminal");
  });

  test("an agent that cannot be started is 127 with one sentence", async () => {
    await using editor = await Editor.start(broker, ["/nonexistent/agent"]);
    expect(await editor.ended).toBe(127);
    expect(editor.stderr).toMatch(/^substrate: Cannot start '\/nonexistent\/agent': ENOENT\n$/);
  });

  test("without a broker nothing is read or run on the host", async () => {
    const gone = await TestBroker.start(actor, { policies: { default: POLICY } });
    const words = [process.execPath, await agentFor(gone)];
    await using editor = await Editor.start(gone, words);
    await editor.open(gone.project);
    gone.write(join(gone.project, "text"), "text\n");
    await gone.kill("SIGTERM");
    const [read, made] = await editor.turn(
      { method: "fs/read_text_file", params: { path: join(gone.project, "text") } },
      run("touch made"),
    );
    for (const refused of [read, made]) expect(refused?.["error"]).toMatch(/broker/);
    expect(existsSync(join(gone.project, "made"))).toBe(false);
    await gone.stop();
  });
});
