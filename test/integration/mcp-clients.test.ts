/** `substrate mcp` with real clients, where this machine has them: the MCP inspector, Claude Code and the conformance suite. */
import * as fs from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestBroker } from "../support/broker/broker.ts";
import { agentProgram, notInstalled } from "../support/programs/agents.ts";
import { HttpBridge, mcpWords, ownMcpWords } from "../support/programs/mcp.ts";
import { ScriptedModel } from "../support/programs/scripted-model.ts";
import { skip } from "../support/run/skips.ts";
import { HomeFolder } from "../support/users/folders.ts";
import { actors, type Ended, runAs } from "../support/users/users.ts";

const INSPECTOR = "@modelcontextprotocol/inspector@2.12.0";
const CLAUDE = "@anthropic-ai/claude-code@2.1.330";
const CONFORMANCE = "@modelcontextprotocol/conformance@0.1.16";

describe.each(actors())("real MCP clients, as $kind", (actor) => {
  let broker: TestBroker;
  let person: HomeFolder;
  beforeAll(async () => {
    broker = await TestBroker.start(actor);
    person = new HomeFolder(actor);
  });
  afterAll(async () => {
    person.remove();
    await broker.stop();
  });

  function programOf(name: string, wanted: string): string {
    const program = agentProgram(name);
    if (program === undefined) skip(`substrate mcp with ${name}`, notInstalled(name, wanted));
    return fs.realpathSync(program ?? "");
  }

  const environment = (): Record<string, string> => ({ SUBSTRATE_HOME: broker.home, HOME: person.path });

  async function inspect(...words: readonly string[]): Promise<Ended> {
    const inspector = programOf("mcp-inspector", INSPECTOR);
    const server = await ownMcpWords(actor);
    // The server would get no other variable, and make a home of its own.
    const home = ["-e", `SUBSTRATE_HOME=${broker.home}`];
    return await runAs(actor, [process.execPath, inspector, "--cli", ...home, ...server, ...words], {
      cwd: broker.project,
      env: environment(),
    });
  }

  test("the inspector lists the tools and calls them", async () => {
    const listed = await inspect("--method", "tools/list");
    expect(listed, listed.stderr).toMatchObject({ code: 0 });
    expect((JSON.parse(listed.stdout) as { tools: readonly object[] }).tools).toHaveLength(14);
    const called = async (name: string, ...args: readonly string[]): Promise<string> => {
      const more = args.flatMap((arg) => ["--tool-arg", arg]);
      const { code, stdout, stderr } = await inspect("--method", "tools/call", "--tool-name", name, ...more);
      expect(code, `${stdout}${stderr}`).toBe(0);
      return (JSON.parse(stdout) as { content: readonly { text: string }[] }).content[0]?.text ?? "";
    };
    expect(await called("write", "path=inspected", "text=seen")).toContain("created");
    expect(fs.readFileSync(join(broker.project, "inspected"), "utf8")).toBe("seen");
    expect(await called("bash", "command=cat inspected")).toMatch(/^seen\n\[exit 0;/);
  }, 60_000);

  test("Claude Code connects to what 'claude mcp add' wrote", async () => {
    const claude = programOf("claude", CLAUDE);
    const options = {
      cwd: broker.project,
      env: { ...environment(), ANTHROPIC_API_KEY: "made-up", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1" },
    };
    const server = await ownMcpWords(actor, "--agent", "claude-code");
    const words = ["mcp", "add", "substrate", "--env", `SUBSTRATE_HOME=${broker.home}`, "--", ...server];
    expect(await runAs(actor, [claude, ...words], options)).toMatchObject({ code: 0 });
    const { stdout, code } = await runAs(actor, [claude, "mcp", "list"], options);
    expect(code).toBe(0);
    expect(stdout).toMatch(/substrate: .*Connected/);
  }, 60_000);

  test("Claude Code does a task with the tools, and every step is in the trace", async () => {
    const claude = programOf("claude", CLAUDE);
    const [command, ...args] = await ownMcpWords(actor, "--agent", "claude-code");
    const server = { command, args, env: { SUBSTRATE_HOME: broker.home } };
    const config = person.write("mcp.json", JSON.stringify({ mcpServers: { substrate: server } }));
    await using model = await ScriptedModel.start([
      ["mcp__substrate__write", { path: "task.sh", text: "echo wrong\n" }],
      ["mcp__substrate__edit", { path: "task.sh", old_text: "wrong", new_text: "right $SUBSTRATE_AGENT_ID" }],
      ["mcp__substrate__bash", { command: "sh task.sh" }],
      ["mcp__substrate__read", { path: join(broker.home, "config.yaml") }],
    ]);
    const words = [
      "-p",
      "go",
      "--strict-mcp-config",
      "--mcp-config",
      config,
      "--allowedTools",
      "mcp__substrate",
    ];
    const { stdout, stderr } = await runAs(actor, [claude, ...words], {
      cwd: broker.project,
      env: {
        ...environment(),
        ANTHROPIC_API_KEY: "made-up",
        ANTHROPIC_BASE_URL: model.url,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
        // The script names the tools, and searches for none.
        ENABLE_TOOL_SEARCH: "false",
        MCP_CONNECTION_NONBLOCKING: "0",
      },
    });
    expect(stdout, stderr).toContain("Done");
    const [written, edited, ran, read] = model.results;
    expect(written).toContain("created");
    expect(edited).toContain("changed");
    expect(ran).toContain("right claude-code\\n[exit 0; allow;");
    expect(read).toContain("policy_denied");
    const own = broker
      .spans()
      .filter(({ agent_id: id, event_type: type }) => id === "claude-code" && type !== "exec");
    for (const cmd of ['["write","task.sh"]', '["edit","task.sh"]', "sh task.sh"])
      expect(own.filter((span) => span.cmd === cmd && span.event_type === "command_complete")).toHaveLength(
        1,
      );
    expect(own.filter(({ event_type: type }) => type === "violation")).toHaveLength(1);
  }, 60_000);

  // The suite wants HTTP, so a bridge stands between; its other scenarios call tools of a server made for the suite.
  test.each(["server-initialize", "ping", "tools-list"])(
    "the conformance suite's %s passes",
    async (scenario) => {
      const conformance = programOf("conformance", CONFORMANCE);
      if (!("globSync" in fs)) skip("the MCP conformance suite", "it needs Node 22 or newer");
      await using bridge = await HttpBridge.start(
        await mcpWords(actor, "--cwd", broker.project),
        environment(),
      );
      const words = [
        "server",
        "--url",
        bridge.url,
        "--scenario",
        scenario,
        "--output-dir",
        join(person.path, scenario),
      ];
      const ended = await runAs(actor, [process.execPath, conformance, ...words], { cwd: person.path });
      expect(ended.code, `${ended.stdout}${ended.stderr}`).toBe(0);
      expect(ended.stdout).toMatch(/Passed: [1-9]\d*\/\d+, 0 failed/);
    },
    60_000,
  );
});
