/** The adapters, from the packed tarball, with the frameworks' own packages and a live broker. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import type * as Ai from "../../api/adapters/ai.ts";
import type * as LangChain from "../../api/adapters/langchain.ts";
import type * as Mastra from "../../api/adapters/mastra.ts";
import type * as OpenAi from "../../api/adapters/openai.ts";
import type * as Client from "../../api/client/index.ts";
import { CHECKOUT } from "../../api/setup/checkout.mjs";
import { TestBroker } from "../support/broker/broker.ts";
import { packed } from "../support/programs/package.ts";
import { skip } from "../support/run/skips.ts";
import { actors } from "../support/users/users.ts";

/** A folder in whose node_modules npm installed them: 300 MB, so the suite does not. */
const FOLDER = process.env["SUBSTRATE_TEST_FRAMEWORKS"];
const PACKAGES = ["ai", "@langchain/core", "@openai/agents", "@mastra/core", "zod"];

const POLICY = 'id: default\nname: Adapters\nmode: enforce\ncommands: { denied: ["sudo *"] }\n';

const place = mkdtempSync(join(tmpdir(), "sb-adapters-"));
let broker: TestBroker | undefined;
let substrate: Client.Substrate;

beforeAll(async () => {
  const [actor] = actors();
  if (FOLDER === undefined || actor === undefined) return;
  const words = ["install", "--offline", "--silent", "--cache", join(place, "cache"), packed(place)];
  writeFileSync(join(place, "package.json"), '{"type":"module"}');
  execFileSync("npm", words, { cwd: place, stdio: "ignore" });
  for (const name of ["ai", "@langchain", "@openai", "@mastra", "zod"])
    symlinkSync(join(FOLDER, "node_modules", name), join(place, "node_modules", name));
  broker = await TestBroker.start(actor, { policies: { default: POLICY } });
  substrate = (await load<typeof Client>("substrate")).connect({ home: broker.home, agent: "adapters" });
  process.chdir(broker.project);
}, 120_000);
afterAll(async () => {
  process.chdir(CHECKOUT);
  await broker?.stop();
  rmSync(place, { recursive: true, force: true });
});

/** The broker; undefined where the package is not installed. */
function brokerFor(name: string): TestBroker | undefined {
  if (FOLDER === undefined || !existsSync(join(FOLDER, "node_modules", name)))
    skip(
      `the adapter for ${name}`,
      `it is not installed: 'npm install ${PACKAGES.join(" ")}' in a folder that SUBSTRATE_TEST_FRAMEWORKS names`,
    );
  return broker;
}

async function load<Module>(name: string): Promise<Module> {
  const path = createRequire(join(place, "package.json")).resolve(name);
  return (await import(pathToFileURL(path).href)) as Module;
}

type Loose = Record<string, any>;

test("AI SDK: a model's call runs in a world, and a refusal is told to the model", async () => {
  if (brokerFor("ai") === undefined) return;
  const { generateText, isStepCount, stepCountIs } = await load<Loose>("ai");
  const { MockLanguageModelV3: Model } = await load<Loose>("ai/test");
  const { bashTool } = await load<typeof Ai>("substrate/adapters/ai");
  const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
  const calling = (command: string, id: string): object => ({
    content: [{ type: "tool-call", toolCallId: id, toolName: "bash", input: JSON.stringify({ command }) }],
    finishReason: { unified: "tool-calls", raw: "tool_calls" },
    usage,
    warnings: [],
  });
  const answers = [
    calling("echo by $SUBSTRATE_AGENT_ID", "1"),
    calling("sudo true", "2"),
    {
      content: [{ type: "text", text: "done" }],
      finishReason: { unified: "stop", raw: "stop" },
      usage,
      warnings: [],
    },
  ];
  const model = new Model({ doGenerate: async () => answers.shift() });
  const stopWhen = (isStepCount ?? stepCountIs)(5);
  const { text, steps } = await generateText({
    model,
    tools: { bash: bashTool(substrate) },
    stopWhen,
    prompt: "go",
  });
  expect(text).toBe("done");
  const outputs = steps.flatMap((step: Loose) =>
    step["toolResults"].map((result: Loose) => result["output"]),
  );
  expect(outputs).toMatchObject([
    { exitCode: 0, stdout: "by adapters\n" },
    { exitCode: 126, stderr: expect.stringContaining("sudo") },
  ]);
  expect(model.doGenerateCalls[0].tools[0].inputSchema).toMatchObject({ required: ["command"] });
});

test("AI SDK: the sandbox session runs, spawns, and keeps files in the world's reach", async () => {
  const at = brokerFor("ai");
  if (at === undefined) return;
  const { sandbox } = await load<typeof Ai>("substrate/adapters/ai");
  const session = sandbox(substrate, at.project);
  expect(
    await session.run({ command: "pwd; echo $A; exit 3", workingDirectory: ".", env: { A: "b" } }),
  ).toEqual({
    exitCode: 3,
    stdout: `${at.project}\nb\n`,
    stderr: "",
  });
  await session.writeTextFile({ path: "new/a b.txt", content: "one\ntwo\nthree\n" });
  expect(readFileSync(join(at.project, "new/a b.txt"), "utf8")).toBe("one\ntwo\nthree\n");
  expect(await session.readTextFile({ path: "new/a b.txt", startLine: 2, endLine: 2 })).toBe("two");
  expect(await session.stat({ path: "new/a b.txt" })).toEqual({ type: "file", size: 14 });
  expect(await session.stat({ path: "new" })).toMatchObject({ type: "directory" });
  expect(await session.listDirectory({ path: "new" })).toEqual([{ name: "a b.txt", type: "file" }]);
  expect([
    await session.stat({ path: "no" }),
    await session.readFile({ path: "no" }),
    await session.deleteFile({ path: "no" }),
  ]).toEqual([null, null, false]);
  await expect(session.writeTextFile({ path: "new", content: "" })).rejects.toThrow("it is a folder");
  await expect(session.writeTextFile({ path: "/etc/mine", content: "" })).rejects.toThrow("Cannot write");
  expect(await session.deleteFile({ path: "new/a b.txt" })).toBe(true);
  const child = await session.spawn({ command: "cat; echo err >&2; exit 5", stdin: true });
  const writer = child.stdin.getWriter();
  await writer.write(Buffer.from("in"));
  await writer.close();
  expect(await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])).toEqual([
    "in",
    "err\n",
  ]);
  expect(await child.wait()).toEqual({ exitCode: 5 });
  const endless = await session.spawn({ command: "sleep 100" });
  await endless.kill();
  expect((await endless.wait()).exitCode).toBe(137);
});

test("LangChain: the tool answers with text, and ends with its signal", async () => {
  if (brokerFor("@langchain/core") === undefined) return;
  const { tool } = await load<Loose>("@langchain/core/tools");
  const { bash } = await load<typeof LangChain>("substrate/adapters/langchain");
  const made = tool(...bash(substrate));
  expect(await made.invoke({ command: "echo out; exit 2" })).toBe("out\n[exit code 2]\n");
  expect(await made.invoke({ command: "sudo true" })).toMatch(/sudo[^]*\[exit code 126\]/);
  await expect(made.invoke({ order: "x" })).rejects.toThrow();
  await expect(made.invoke({ command: "sleep 100" }, { signal: AbortSignal.timeout(300) })).rejects.toThrow();
});

test("OpenAI Agents: the local shell tool runs each command", async () => {
  if (brokerFor("@openai/agents") === undefined) return;
  const { shellTool } = await load<Loose>("@openai/agents");
  const { shell } = await load<typeof OpenAi>("substrate/adapters/openai");
  const { shell: made } = shellTool({ shell: shell(substrate) });
  const { output } = await made.run({ commands: ["echo one", "sudo true", "sleep 5"], timeoutMs: 500 });
  expect(output).toMatchObject([
    { stdout: "one\n", outcome: { type: "exit", exitCode: 0 } },
    { stdout: "", outcome: { type: "exit", exitCode: 126 } },
    { outcome: { type: "timeout" } },
  ]);
});

test("Mastra: a workspace runs commands in the sandbox", async () => {
  if (brokerFor("@mastra/core") === undefined) return;
  const { Workspace, createWorkspaceTools } = await load<Loose>("@mastra/core/workspace");
  const { sandbox } = await load<typeof Mastra>("substrate/adapters/mastra");
  const workspace = new Workspace({ sandbox: sandbox(substrate) });
  await workspace.init();
  const result = await workspace.sandbox.executeCommand("printf", ["%s|", "a b", "c"]);
  expect(result).toMatchObject({ success: true, exitCode: 0, stdout: "a b|c|" });
  const tools: Loose = await createWorkspaceTools(workspace);
  const execute = Object.entries(tools).find(([name]) => /execute_command/.test(name))?.[1] as Loose;
  const told = await execute["execute"]({ command: "echo from the tool" }, { workspace });
  expect(JSON.stringify(told)).toContain("from the tool");
  await workspace.destroy();
});

const USER = `
import { generateText, type Experimental_SandboxSession, type LanguageModel } from "ai";
import { tool } from "@langchain/core/tools";
import { shellTool } from "@openai/agents";
import { Workspace } from "@mastra/core/workspace";
import { connect } from "substrate";
import { bashTool, sandbox } from "substrate/adapters/ai";
import { bash } from "substrate/adapters/langchain";
import { shell } from "substrate/adapters/openai";
import { sandbox as mastra } from "substrate/adapters/mastra";
const substrate = connect();
export const session: Experimental_SandboxSession = sandbox(substrate);
export const run = (model: LanguageModel) => generateText({ model, prompt: "", tools: { bash: bashTool(substrate) } });
export const all = [tool(...bash(substrate)), shellTool({ shell: shell(substrate) }), new Workspace({ sandbox: mastra(substrate) })];
`;

test("the frameworks' types accept the adapters", () => {
  if (brokerFor("ai") === undefined) return;
  writeFileSync(join(place, "user.ts"), USER);
  const tsc = join(CHECKOUT, "node_modules/typescript/bin/tsc");
  const words = ["--noEmit", "--strict", "--skipLibCheck", "--target", "es2023", "--types", "node"];
  const modules = ["--typeRoots", join(CHECKOUT, "node_modules/@types"), "--module", "nodenext", "user.ts"];
  const { stdout } = runTsc([tsc, ...words, ...modules]);
  expect(stdout).toBe("");
});

function runTsc(words: readonly string[]): { readonly stdout: string } {
  try {
    return { stdout: execFileSync(process.execPath, words, { cwd: place, encoding: "utf8", stdio: "pipe" }) };
  } catch (error) {
    return error as { readonly stdout: string };
  }
}
