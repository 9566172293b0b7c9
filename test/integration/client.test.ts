/** `import { connect } from "substrate"`, from the packed tarball, against a live broker. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type * as Client from "../../api/client/index.ts";
import { CHECKOUT } from "../../api/setup/checkout.mjs";
import { eventually, TestBroker } from "../support/broker/broker.ts";
import { packed } from "../support/programs/package.ts";
import { actors } from "../support/users/users.ts";

const POLICY = `id: default
name: Client
mode: enforce
commands: { denied: ["sudo *"], ask: ["make deploy"], isolated: ["touch isolated*"] }
`;

let folder: string;
let client: typeof Client;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "sb-client-"));
  const tarball = packed(folder);
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
  const words = ["install", "--offline", "--silent", "--cache", join(folder, "cache"), tarball];
  execFileSync("npm", words, { cwd: folder, stdio: "ignore" });
  const entry = createRequire(join(folder, "package.json")).resolve("substrate");
  client = (await import(entry)) as typeof Client;
}, 120_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const USER = `
import { connect, SubstrateError, type ExecuteResult, type Output } from "substrate";
const substrate = connect({ agent: "a" });
export async function use(signal: AbortSignal): Promise<number> {
  const result: ExecuteResult = await substrate.execute("true", { signal });
  const out: Output[] = [];
  for await (const output of substrate.stream({ cmd: "cat", stdin: true })) out.push(output);
  try { await substrate.check("x"); } catch (error) { if (error instanceof SubstrateError) return error.status; }
  // @ts-expect-error: no such field
  await substrate.execute({ cmd: "true", nothing: 1 });
  return result.exit;
}
`;

test.each([
  ["nodenext", "nodenext"],
  ["esnext", "bundler"],
])("its declarations compile without skipLibCheck: module %s, moduleResolution %s", (module, resolution) => {
  writeFileSync(join(folder, "user.ts"), USER);
  const tsc = join(CHECKOUT, "node_modules/typescript/bin/tsc");
  const words = [
    "--noEmit",
    "--strict",
    "--exactOptionalPropertyTypes",
    "--target",
    "es2023",
    "--types",
    "node",
  ];
  const types = ["--typeRoots", join(CHECKOUT, "node_modules/@types"), "--skipLibCheck", "false"];
  const modules = ["--module", module, "--moduleResolution", resolution];
  expect(() =>
    execFileSync(process.execPath, [tsc, ...words, ...types, ...modules, "user.ts"], {
      cwd: folder,
      stdio: "pipe",
    }),
  ).not.toThrow();
});

test("plain CommonJS can require it", () => {
  mkdirSync(join(folder, "cjs"), { recursive: true });
  writeFileSync(join(folder, "cjs/use.cjs"), 'console.log(typeof require("substrate").connect)');
  const words = ["--no-warnings", join(folder, "cjs/use.cjs")];
  expect(execFileSync(process.execPath, words, { encoding: "utf8" })).toBe("function\n");
});

describe.each(actors())("the client, as $kind", (actor) => {
  let broker: TestBroker;
  let substrate: Client.Substrate;
  const here = (): { readonly cwd: string } => ({ cwd: broker.project });

  beforeAll(async () => {
    broker = await TestBroker.start(actor, {
      policies: { default: POLICY },
      config: "agents:\n  named: { policy: default }\n",
    });
    substrate = client.connect({ home: broker.home, agent: "test" });
  });
  afterAll(() => broker.stop());

  test("runs a command with its input, and answers with text, code and span", async () => {
    const result = await substrate.execute({ ...here(), cmd: "cat; echo err >&2; exit 3", stdin: "ü in" });
    expect(result).toMatchObject({ exit: 3, stdout: "ü in", stderr: "err\n", agent_id: "test" });
    const { span } = await substrate.trace(result.span_id);
    expect(span).toMatchObject({ span_id: result.span_id, exit: 3 });
    const spans: string[] = [];
    for await (const each of substrate.spans({ limit: 1 })) {
      spans.push(each.span_id);
      if (spans.length === 3) break;
    }
    expect(new Set(spans).size).toBe(spans.length);
  });

  test("a refusal is one class, with code, status, hint and rule; so is a missing broker", async () => {
    const denied = await substrate.execute({ ...here(), cmd: "sudo true" }).catch((error: unknown) => error);
    expect(denied).toBeInstanceOf(client.SubstrateError);
    expect(denied).toMatchObject({ code: "policy_denied", status: 403, details: { exit: 126 } });
    expect((denied as Client.SubstrateError).hint).not.toBe("");
    const streamed = substrate.stream({ ...here(), cmd: "sudo true" });
    await expect(streamed.started).rejects.toMatchObject({ code: "policy_denied", status: 403 });
    await expect(streamed.finished()).rejects.toMatchObject({ code: "policy_denied" });
    expect((await substrate.check({ ...here(), cmd: "sudo true" })).decision.verdict).toBe("deny");
    const nobody = client.connect({ home: join(broker.folder, "none") });
    for (const call of [nobody.execute("true"), nobody.stream("true").finished()])
      await expect(call).rejects.toMatchObject({ name: "SubstrateError", code: "no_broker", status: 0 });
  });

  test("streams both outputs in order, with input, signals and its end", async () => {
    const command = substrate.stream({ ...here(), cmd: "cat; echo err >&2; exit 4", stdin: true });
    const written = command.write("a".repeat(1_000_000));
    command.end();
    let [out, err] = [0, ""];
    for await (const { stream, bytes } of command)
      if (stream === "stdout") out += bytes.length;
      else err += Buffer.from(bytes).toString();
    await written;
    expect([out, err, (await command.finished()).exit]).toEqual([1_000_000, "err\n", 4]);

    const trap = substrate.stream({
      ...here(),
      cmd: "trap 'echo caught; exit 7' INT; echo ready; while :; do sleep 0.1; done",
    });
    let said = "";
    for await (const { bytes } of trap) {
      said += Buffer.from(bytes).toString();
      if (said === "ready\n") trap.signal("SIGINT");
    }
    expect([said, (await trap.finished()).exit]).toEqual(["ready\ncaught\n", 7]);
  });

  test("a terminal has its size, and takes another", async () => {
    const command = substrate.stream({
      ...here(),
      cmd: "stty size; read line; stty size",
      pty: true,
      cols: 90,
      rows: 30,
      stdin: true,
    });
    let said = "";
    for await (const { bytes } of command) {
      const before = said;
      said += Buffer.from(bytes).toString();
      if (!before.includes("30 90") && said.includes("30 90")) {
        command.resize(100, 40);
        await command.write("go\n");
      }
    }
    expect(said).toMatch(/30 90[^]*40 100/);
    expect((await command.finished()).exit).toBe(0);
  });

  test("an abort ends the command, and rejects with its reason", async () => {
    const marks = ["execute", "stream"].map((name) => join(broker.project, `ended-${name}`));
    for (const [index, mark] of marks.entries()) {
      const cancel = new AbortController();
      const cmd = `touch ${mark}; while :; do date +%s%N > ${mark}; sleep 0.05; done`;
      const request = { ...here(), cmd };
      const call =
        index === 0
          ? substrate.execute(request, { signal: cancel.signal })
          : substrate.stream(request, { signal: cancel.signal }).finished();
      const rejected = call.catch((error: unknown) => error);
      expect(await eventually(() => existsSync(mark), 10_000)).toBe(true);
      cancel.abort(new Error("enough"));
      expect(await rejected).toMatchObject({ message: "enough" });
      await new Promise((done) => setTimeout(done, 2_000));
      const last = readFileSync(mark, "utf8");
      await new Promise((done) => setTimeout(done, 300));
      expect(readFileSync(mark, "utf8")).toBe(last);
    }
    await expect(
      substrate.execute("true", { signal: AbortSignal.abort(new Error("before")) }),
    ).rejects.toThrow("before");
  });

  test("an operator answers a question and applies held changes; an agent's name in config.yaml has its own socket", async () => {
    broker.write(join(broker.project, "Makefile"), "deploy:\n\t@echo deployed\n");
    const call = substrate.execute({ ...here(), cmd: "make deploy", approval_wait_ms: 20_000 });
    let approvals: readonly Client.Approval[] = [];
    expect(
      await eventually(async () => (approvals = await substrate.operator.approvals()).length > 0, 10_000),
    ).toBe(true);
    await substrate.operator.decide(approvals[0]?.approval_id ?? "", "once");
    expect((await call).stdout).toBe("deployed\n");

    const { span_id: span } = await substrate.execute({ ...here(), cmd: "touch isolated" });
    expect((await substrate.held()).held.map(({ span_id }) => span_id)).toContain(span);
    expect((await substrate.diff(span)).changes).toMatchObject([{ path: "isolated", kind: "write" }]);
    await expect(substrate.apply(span)).rejects.toMatchObject({ name: "SubstrateError", status: 403 });
    expect((await substrate.operator.apply(span)).done).toEqual(["isolated"]);

    const named = client.connect({ home: broker.home, agent: "named" });
    expect(named.socket).toBe(join(broker.home, "sock/agents/named.sock"));
    expect((await named.execute({ ...here(), cmd: "echo own" })).agent_id).toBe("named");
    await expect(named.trace(span)).rejects.toMatchObject({ code: "not_found", status: 404 });
  });

  test("a loop that ends early ends the command", async () => {
    const command = substrate.stream({ ...here(), cmd: "echo one; sleep 100; echo two" });
    for await (const _output of command) break;
    await expect(command.finished()).rejects.toMatchObject({ code: "disconnected" });
  });
});
