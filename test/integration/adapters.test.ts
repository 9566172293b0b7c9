/** The adapters, from the packed tarball, with the frameworks' own packages and a live broker. */
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import type * as Ai from "../../api/adapters/ai.ts";
import type * as Client from "../../api/client/index.ts";
import { CHECKOUT } from "../../api/setup/checkout.mjs";
import { TestBroker } from "../support/broker/broker.ts";
import { packed } from "../support/programs/package.ts";
import { skip } from "../support/run/skips.ts";
import { actors } from "../support/users/users.ts";

/** A folder in whose node_modules npm installed them: 300 MB, so the suite does not. */
const FOLDER = process.env["SUBSTRATE_TEST_FRAMEWORKS"];
/** On Node 20 npm takes an older major version of two, which lacks what the adapters use, unless it is named. */
const PACKAGES = ["ai@7", "@langchain/core@1", "@openai/agents", "@mastra/core@1", "zod"];

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
}, 120_000);
afterAll(async () => {
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

/** Runs a program of a framework's user in the project; it prints JSON. */
function printed(at: TestBroker, program: string): unknown {
  const file = join(place, `user-${randomUUID()}.mjs`);
  const head = 'import { connect } from "substrate";\nconst substrate = connect({ agent: "adapters" });\n';
  writeFileSync(file, `${head}${program}`);
  const env = { ...process.env, SUBSTRATE_HOME: at.home };
  return JSON.parse(execFileSync(process.execPath, [file], { cwd: at.project, env, encoding: "utf8" }));
}

const AI = `
import { generateText, isStepCount } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { bashTool } from "substrate/adapters/ai";
const rest = { usage: { inputTokens: { total: 1 }, outputTokens: { total: 1 } }, warnings: [] };
const calling = (command, toolCallId) => ({
  content: [{ type: "tool-call", toolCallId, toolName: "bash", input: JSON.stringify({ command }) }],
  finishReason: { unified: "tool-calls", raw: "tool_calls" },
  ...rest,
});
const done = { content: [{ type: "text", text: "done" }], finishReason: { unified: "stop", raw: "stop" }, ...rest };
const answers = [calling("echo by $SUBSTRATE_AGENT_ID", "1"), calling("sudo true", "2"), done];
const model = new MockLanguageModelV3({ doGenerate: async () => answers.shift() });
const { text, steps } = await generateText({
  model, tools: { bash: bashTool(substrate) }, stopWhen: isStepCount(5), prompt: "go",
});
const outputs = steps.flatMap(({ toolResults }) => toolResults.map(({ output }) => output));
console.log(JSON.stringify({ text, outputs, schema: model.doGenerateCalls[0].tools[0].inputSchema }));
`;

test("AI SDK: a model's call runs in a world, and a refusal is told to the model", () => {
  const at = brokerFor("ai");
  if (at === undefined) return;
  expect(printed(at, AI)).toMatchObject({
    text: "done",
    outputs: [
      { exitCode: 0, stdout: "by adapters\n" },
      { exitCode: 126, stderr: expect.stringContaining("sudo") },
    ],
    schema: { required: ["command"] },
  });
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

const LANGCHAIN = `
import { tool } from "@langchain/core/tools";
import { bash } from "substrate/adapters/langchain";
const made = tool(...bash(substrate));
const message = (error) => error.message;
console.log(JSON.stringify([
  await made.invoke({ command: "echo out; exit 2" }),
  await made.invoke({ command: "sudo true" }),
  await made.invoke({ order: "x" }).catch(message),
  await made.invoke({ command: "sleep 100" }, { signal: AbortSignal.timeout(300) }).catch(message),
]));
`;

test("LangChain: the tool answers with text, and ends with its signal", () => {
  const at = brokerFor("@langchain/core");
  if (at === undefined) return;
  expect(printed(at, LANGCHAIN)).toEqual([
    "out\n[exit code 2]\n",
    expect.stringMatching(/sudo[^]*\[exit code 126\]/),
    expect.stringContaining("schema"),
    expect.stringContaining("abort"),
  ]);
});

const OPENAI = `
import { shellTool } from "@openai/agents";
import { shell } from "substrate/adapters/openai";
const { shell: made } = shellTool({ shell: shell(substrate) });
console.log(JSON.stringify(await made.run({ commands: ["echo one", "sudo true", "sleep 5"], timeoutMs: 500 })));
`;

test("OpenAI Agents: the local shell tool runs each command", () => {
  const at = brokerFor("@openai/agents");
  if (at === undefined) return;
  expect(printed(at, OPENAI)).toMatchObject({
    output: [
      { stdout: "one\n", outcome: { type: "exit", exitCode: 0 } },
      { stdout: "", outcome: { type: "exit", exitCode: 126 } },
      { outcome: { type: "timeout" } },
    ],
  });
});

const MASTRA = `
import { Workspace, createWorkspaceTools } from "@mastra/core/workspace";
import { sandbox } from "substrate/adapters/mastra";
const workspace = new Workspace({ sandbox: sandbox(substrate) });
await workspace.init();
const result = await workspace.sandbox.executeCommand("printf", ["%s|", "a b", "c"]);
const tools = await createWorkspaceTools(workspace);
const [, tool] = Object.entries(tools).find(([name]) => /execute_command/.test(name));
console.log(JSON.stringify({ result, told: await tool.execute({ command: "echo from the tool" }, { workspace }) }));
await workspace.destroy();
`;

test("Mastra: a workspace runs commands in the sandbox", () => {
  const at = brokerFor("@mastra/core");
  if (at === undefined) return;
  expect(printed(at, MASTRA)).toEqual({
    result: expect.objectContaining({ success: true, exitCode: 0, stdout: "a b|c|" }),
    told: expect.stringContaining("from the tool"),
  });
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
