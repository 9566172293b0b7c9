/** `substrate mcp`, by the official SDK's client in both lines of the protocol. */
import { spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ApprovalsReply } from "../../schemas/generated/types.ts";
import { eventually, TestBroker } from "../support/broker/broker.ts";
import { McpClient, mcpWords, ownMcpWords } from "../support/programs/mcp.ts";
import { HomeFolder } from "../support/users/folders.ts";
import { actors, runAs } from "../support/users/users.ts";

const POLICY = `id: default
name: Tools
mode: enforce
fs: { deny_read: ["$PROJECT/secret"] }
commands:
  denied: ["rm -rf *"]
  isolated: ["touch held *"]
  ask: ["git push *"]
changes: { apply: agent }
`;

/** Every definition is read by the model with every request. No tokenizer finds less than three characters a token in such JSON. */
const MOST_CHARACTERS = 3 * 2500;

describe.each(actors())("substrate mcp, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
  });
  afterAll(() => broker.stop());

  const at = (path: string): string => join(broker.project, path);

  test.each([false, true])("a connection keeps its folder and variables (modern: %s)", async (modern) => {
    await using mcp = await McpClient.connect(broker, [], { modern });
    await using other = await McpClient.connect(broker, [], { modern });
    const folder = `deep-${String(modern)}`;
    await mcp.use("bash", {
      command: `mkdir -p ${folder}/in; cd ${folder}; export X=kept`,
    });
    expect((await mcp.use("write", { path: "note", text: "here\n" })).isError).toBe(false);
    expect(readFileSync(at(`${folder}/note`), "utf8")).toBe("here\n");
    expect((await mcp.use("read", { path: "../secret/key" })).isError).toBe(true);
    expect((await mcp.use("bash", { command: "cd none" })).text).toContain("[exit 1;");
    expect((await mcp.use("bash", { command: 'echo "$X ${PWD##*/}"; cat note' })).text).toMatch(
      new RegExp(`^kept ${folder}\nhere\n`),
    );
    expect((await other.use("bash", { command: 'echo "$X,${PWD##*/}"' })).text).toContain(
      `,${broker.project.split("/").pop() ?? ""}\n`,
    );
    expect((await other.use("read", { path: "note" })).isError).toBe(true);
  });

  test("a command that reads its input finds the end of it", async () => {
    await using mcp = await McpClient.connect(broker, []);
    const read = await mcp.use("bash", { command: "cat; echo end", timeout_ms: 20_000 });
    expect(read.text).toMatch(/^end\n/);
    expect(read.text).not.toContain("timed out");
  });

  test.each([
    { modern: false, version: "2025-11-25" },
    { modern: true, version: "2026-07-28" },
  ])("every tool works in $version", async ({ modern, version }) => {
    await using mcp = await McpClient.connect(broker, [], { modern });
    expect(mcp.client.getNegotiatedProtocolVersion()).toBe(version);
    const { tools } = await mcp.client.listTools();
    expect(JSON.stringify(tools).length).toBeLessThan(MOST_CHARACTERS);
    expect(tools.map(({ name }) => name).join(" ")).toBe(
      "bash output read write edit apply_patch glob grep diff apply discard trace request_scopes status",
    );

    expect((await mcp.use("write", { path: `t-${version}/a.ts`, text: "one\ntwo\n" })).text).toContain(
      "created",
    );
    expect(
      (await mcp.use("edit", { path: `t-${version}/a.ts`, old_text: "two", new_text: "2" })).isError,
    ).toBe(false);
    const patch = `*** Begin Patch\n*** Update File: t-${version}/a.ts\n-one\n+1\n*** End Patch`;
    expect((await mcp.use("apply_patch", { patch })).isError).toBe(false);
    expect((await mcp.use("read", { path: `t-${version}/a.ts` })).text).toBe("1\n2\n");
    expect((await mcp.use("read", { path: `t-${version}/a.ts`, lines: 1 })).text).toContain(
      "[lines 1 to 1 of 2;",
    );
    expect((await mcp.use("glob", { pattern: `t-${version}/*.ts` })).text).toBe(`t-${version}/a.ts`);
    expect((await mcp.use("grep", { pattern: "^[0-9]$", path: `t-${version}` })).text).toBe(
      "a.ts:1:1\na.ts:2:2",
    );

    const ran = await mcp.use("bash", { command: "echo out; echo err >&2; exit 3" });
    expect(ran).toMatchObject({ isError: false });
    expect(ran.text).toMatch(/^out\nerr\n\[exit 3; allow; \d+ ms; spn_[-0-9a-f]+\]$/);

    const turns = await mcp.use("bash", { command: "for i in 1 2 3; do echo out; echo err >&2; done" });
    expect(turns.text).toMatch(/^(out\nerr\n){3}\[exit 0;/);

    const isolated = await mcp.use("bash", { command: `touch held held-${version}` });
    const [span = ""] = /spn_[-0-9a-f]+/.exec(isolated.text) ?? [];
    expect(isolated.text).toContain("; isolate;");
    expect(existsSync(at(`held-${version}`))).toBe(false);
    expect((await mcp.use("status")).text).toContain(`held changes: ${span}`);
    expect((await mcp.use("diff", { span_id: span })).text).toContain(`held-${version}`);
    expect((await mcp.use("apply", { span_id: span, paths: [`held-${version}`] })).text).toContain("Applied");
    expect(existsSync(at(`held-${version}`))).toBe(true);
    expect((await mcp.use("discard", { span_id: span })).isError).toBe(false);

    expect((await mcp.use("trace")).text).toContain(`["read","t-${version}/a.ts"]`);
    expect((await mcp.use("trace", { span_id: span })).text).toContain("touch held");
    expect(mcp.stderr).toBe("");
  });

  test("a reply says what it leaves out, and reading on leaves no gap", async () => {
    await using mcp = await McpClient.connect(broker, []);
    const lines = Array.from({ length: 40 }, (_, line) => `${line + 1}:${"x".repeat(5000)}:${line + 1}\n`);
    broker.write(at("wide"), lines.join(""));
    let read = "";
    for (let line = 1; line <= 40; ) {
      const { text } = await mcp.use("read", { path: "wide", line });
      const [told = "", next = "41"] =
        /\[lines \d+ to \d+ of 40; read on with line (\d+)\]$/.exec(text) ?? [];
      read += text.slice(0, text.length - told.length);
      line = Number(next);
    }
    expect(read).toBe(lines.join(""));

    broker.write(at("one-line"), "y".repeat(100_000));
    expect((await mcp.use("read", { path: "one-line" })).text).toMatch(
      /y\n\[the first 60000 bytes of line 1, .*cut -b\]$/,
    );
    writeFileSync(at("latin"), Buffer.from("caf\xe9\n", "latin1"));
    expect((await mcp.use("read", { path: "latin" })).text).toContain("would lose them");

    broker.write(at("big"), `FIND ME\n${"z".repeat(99)}\n`.repeat(110_000));
    expect((await mcp.use("grep", { pattern: "FIND ME", path: "big" })).text).toContain(
      "not everything was searched",
    );
    expect((await mcp.use("grep", { pattern: "NOT THERE", path: "wide" })).text).toBe("Nothing was found");
  });

  test("a refusal names the rule and what to do, and a wrong argument its name", async () => {
    broker.write(at("secret"), "s");
    await using mcp = await McpClient.connect(broker, []);
    const denied = await mcp.use("bash", { command: "rm -rf x" });
    expect(denied).toMatchObject({ isError: true });
    expect(denied.text).toMatch(/^policy_denied: .*'rm -rf \*' in commands\.denied.*\nhint: /s);
    expect((await mcp.use("read", { path: "secret" })).text).toMatch(
      /^policy_denied: .*fs\.deny_read.*\nhint: /s,
    );
    expect((await mcp.use("read", { file: "a" })).text).toContain("Unknown argument 'file'");
    expect((await mcp.use("read", { path: 7 })).text).toContain("'path' must be of type string");
    expect((await mcp.use("edit", { path: "a" })).text).toContain("'old_text' is missing");
    expect(await mcp.use("nothing")).toMatchObject({ isError: true });
  });

  test("a message that is too long is refused by name, and leaves the connection open", async () => {
    await using mcp = await McpClient.connect(broker, []);
    const refused = await mcp.use("write", { path: "long", text: "x".repeat(11_000_000) });
    expect(refused).toMatchObject({ isError: true, text: expect.stringMatching(/^too_large: .*\nhint: /s) });
    expect(existsSync(at("long"))).toBe(false);
    const command = `echo ${"x".repeat(11_000_000)}`;
    expect((await mcp.use("bash", { command })).text).toMatch(/^A message of more than 10 MiB/);
    expect((await mcp.use("write", { path: "long", text: "x".repeat(9_000_000) })).isError).toBe(false);
    expect((await mcp.use("bash", { command: "wc -c < long" })).text).toMatch(/^9000000\n/);
  });

  test("a running command tells its progress, and its end when it is cancelled", async () => {
    await using mcp = await McpClient.connect(broker, []);
    const told: string[] = [];
    const onprogress = ({ message = "" }): void => void told.push(message);
    await mcp.use("bash", { command: "for i in 1 2 3; do echo step $i; sleep 0.7; done" }, { onprogress });
    expect(told).toContain("step 2");

    const over = new AbortController();
    const running = mcp.use(
      "bash",
      { command: "touch began; sleep 300; touch ended" },
      { signal: over.signal },
    );
    expect(await eventually(() => existsSync(at("began")), 10_000)).toBe(true);
    over.abort();
    await expect(running).rejects.toThrow(/abort/i);
    const gone = async (): Promise<boolean> =>
      !(await broker.cli(["world", "status"])).stdout.includes("sleep 300");
    expect(await eventually(gone, 5000)).toBe(true);
    expect(existsSync(at("ended"))).toBe(false);
  });

  test("a long output is cut in its middle and can be read to its end", async () => {
    await using mcp = await McpClient.connect(broker, []);
    const { text } = await mcp.use("bash", { command: "seq 1 200000" });
    expect(text.length).toBeLessThan(30_000);
    expect(text.split("\n").slice(0, 2)).toEqual(["1", "2"]);
    expect(text).toContain("\n200000\n[exit 0");
    const [, ref = "", from = ""] = /output\(ref "(\w+)", offset (\d+)\)/.exec(text) ?? [];
    let whole = text.slice(0, Number(from));
    for (let offset: number | undefined = Number(from); offset !== undefined; ) {
      const part: string = (await mcp.use("output", { ref, offset })).text;
      const end = part.lastIndexOf("[");
      const next = /offset (\d+) of/.exec(part.slice(end))?.[1];
      // A line that is not whole gets a line end before the bracket.
      const length = (next === undefined ? 1_288_895 : Number(next)) - offset;
      whole += part.slice(0, length);
      offset = next === undefined ? undefined : Number(next);
    }
    expect(whole).toBe(Array.from({ length: 200_000 }, (_, line) => `${line + 1}\n`).join(""));
    expect((await mcp.use("bash", { command: "head -c 20000000 /dev/zero | tr '\\0' x" })).text).toContain(
      "[exit 0",
    );
    const wide = await mcp.use("bash", { command: "printf x; yes 'ä€😀' | tr -d '\\n' | head -c 90000" });
    expect(wide.text).toMatch(/^x(ä€😀)+[ä€]*\n\[/u);
    expect((await mcp.use("output", { ref: "out2", offset: 12_000 })).text.length).toBeLessThan(25_000);
    expect(await mcp.use("output", { ref: "out9" })).toMatchObject({ isError: true });
  });

  test("a question waits for the operator, whatever the client would answer", async () => {
    await using mcp = await McpClient.connect(broker, ["--wait", "20s"]);
    let elicited = 0;
    mcp.client.setRequestHandler("elicitation/create", () => {
      elicited += 1;
      return { action: "accept" as const, content: {} };
    });
    for (const decision of ["once", "deny"] as const) {
      const told: string[] = [];
      const running = mcp.use(
        "bash",
        { command: `git push ${decision}` },
        { onprogress: ({ message = "" }) => void told.push(message) },
      );
      const asked = (): boolean => told.some((words) => words.includes("substrate approve apr_"));
      expect(await eventually(asked, 10_000), told.join("\n")).toBe(true);
      const [id = ""] = /apr_[-0-9a-f]+/.exec(told.join("\n")) ?? [];
      const { approvals } = (await broker.operator("GET", "/v1/approvals")).document as ApprovalsReply;
      expect(approvals.map((one) => one.approval_id)).toContain(id);
      await broker.operator("POST", `/v1/approvals/${id}`, { decision });
      expect((await running).text).toContain(decision === "once" ? "; allow;" : "approval_denied");
    }
    expect(elicited).toBe(0);
  });

  test("without an answer in time the reply says which approval to wait for", async () => {
    await using mcp = await McpClient.connect(broker, ["--wait", "300ms"]);
    expect((await mcp.use("bash", { command: "git push late" })).text).toMatch(
      /^approval_required: .*apr_.*\nhint: /s,
    );
  });

  test("granted scopes open what the policy does not", async () => {
    await using mcp = await McpClient.connect(broker, ["--wait", "20s"]);
    const folder = new HomeFolder(actor);
    const open = join(folder.path, "outside");
    folder.write("outside/a", "old");
    expect((await mcp.use("write", { path: join(open, "a"), text: "new" })).text).toContain("fs.write");
    const asking = mcp.use("request_scopes", { scopes: [`fs.write:${open}`], reason: "to test" });
    const pending = async (): Promise<string | undefined> =>
      ((await broker.operator("GET", "/v1/approvals")).document as ApprovalsReply).approvals.find(
        ({ reason }) => reason === "to test",
      )?.approval_id;
    expect(await eventually(async () => (await pending()) !== undefined, 10_000)).toBe(true);
    await broker.operator("POST", `/v1/approvals/${(await pending()) ?? ""}`, { decision: "session" });
    expect((await asking).text).toContain('Granted as "scope1"');
    const written = await mcp.use("write", { path: join(open, "a"), text: "new", scope: "scope1" });
    expect(written, written.text).toMatchObject({ isError: false });
    expect(readFileSync(join(open, "a"), "utf8")).toBe("new");
    folder.remove();
  });

  test("the project is --cwd, else the client's root, else the folder of the start", async () => {
    for (const name of ["one", "two"]) broker.write(at(`${name}/.git/HEAD`), "ref: refs/heads/main\n");
    const folder = async (mcp: McpClient): Promise<string> =>
      (await mcp.use("bash", { command: "pwd" })).text.split("\n")[0] ?? "";
    {
      await using mcp = await McpClient.connect(broker, [], { roots: [at("one")] });
      expect(await folder(mcp)).toBe(at("one"));
    }
    {
      await using mcp = await McpClient.connect(broker, ["--cwd", at("two")], { roots: [at("one")] });
      expect(await folder(mcp)).toBe(at("two"));
    }
    await using mcp = await McpClient.connect(broker, ["--agent", "named"]);
    expect(await folder(mcp)).toBe(broker.project);
    expect((await mcp.use("status")).text).toContain(`agent named, folder ${broker.project}`);
  });

  test("standard output carries only the protocol, and ends with its input", async () => {
    const [command, ...args] = await mcpWords(actor);
    const env = { SUBSTRATE_HOME: broker.home, HOME: actor.home, PATH: process.env["PATH"] ?? "" };
    const child = spawn(command, args, { env, cwd: broker.project, stdio: ["pipe", "pipe", "pipe"] });
    let out = "";
    child.stdout.on("data", (bytes: Buffer) => {
      out += bytes.toString();
    });
    const send = (message: object | string): void =>
      void child.stdin.write(`${typeof message === "string" ? message : JSON.stringify(message)}\n`);
    send("no JSON");
    send({
      jsonrpc: "2.0",
      id: 1,
      method: "initialize",
      params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "raw", version: "1" } },
    });
    send({ jsonrpc: "2.0", method: "notifications/initialized" });
    send({
      jsonrpc: "2.0",
      id: 2,
      method: "tools/call",
      params: { name: "bash", arguments: { command: "echo 'x\ny'; sleep 60" } },
    });
    await eventually(() => out.includes('"id":1'), 10_000);
    await sleep(500);
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.stdin.end();
    expect(await ended).toBe(0);
    for (const line of out.trim().split("\n")) expect(JSON.parse(line)).toMatchObject({ jsonrpc: "2.0" });
    expect(out).toContain('"protocolVersion":"2025-06-18"');
    const gone = async (): Promise<boolean> =>
      !(await broker.cli(["world", "status"])).stdout.includes("sleep 60");
    expect(await eventually(gone, 5000)).toBe(true);
  });

  test("a message without an end is told, and ends it", async () => {
    const words = await ownMcpWords(actor);
    const env = { SUBSTRATE_HOME: broker.home };
    const endless = await runAs(actor, words, { env, cwd: broker.project, stdin: "x".repeat(40_000_000) });
    expect(endless.code).toBe(1);
    expect(endless.stderr).toMatch(/exceeded maximum size/);
  });

  test("without a broker it starts one, also when one goes away", async () => {
    await using mcp = await McpClient.connect(broker, []);
    await broker.kill("SIGTERM");
    expect((await mcp.use("bash", { command: "echo back" })).text).toContain("back\n[exit 0");
    expect((await broker.cli(["broker", "stop"])).code).toBe(0);
  });
});
