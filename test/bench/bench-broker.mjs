/** A broker for a bench: a home and a project of its own, taken down with everything in it. */
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const CHECKOUT = fileURLToPath(new URL("../..", import.meta.url));
const LAUNCHER = join(CHECKOUT, "api/bin/substrate.mjs");
const READY_MS = 20_000;

/**
 * @param {{ policies?: Record<string, string>, config?: string, project?: (folder: string) => void, within?: readonly string[] }} options
 *   `project` fills the project's folder before the broker starts; `within` are words that start it in a namespace of the
 *   bench's, and become it.
 */
export async function startBroker({ policies = {}, config, project: fill = () => {}, within = [] } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "substrate-bench-"));
  const home = join(folder, "home");
  const project = join(folder, "project");
  mkdirSync(join(home, "policies"), { recursive: true });
  // A folder without a mark is no project in /tmp.
  mkdirSync(join(project, ".git"), { recursive: true });
  fill(project);
  for (const [name, text] of Object.entries(policies))
    writeFileSync(join(home, "policies", `${name}.yaml`), text);
  if (config !== undefined) writeFileSync(join(home, "config.yaml"), config);
  const [program, ...words] = [...within, process.execPath, LAUNCHER, "broker", "start", "--foreground"];
  const child = spawn(program ?? process.execPath, words, {
    env: { ...process.env, SUBSTRATE_HOME: home },
    stdio: ["ignore", "ignore", "inherit"],
    cwd: project,
  });
  const stop = async () => {
    const gone = child.exitCode === null ? new Promise((resolve) => child.once("exit", resolve)) : undefined;
    child.kill("SIGTERM");
    await gone;
    rmSync(folder, { recursive: true, force: true });
  };
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const many = new Agent({ keepAlive: true, maxSockets: 64 });
  /** @param {Record<string, unknown>} body a question about a command that is not run */
  const check = (body) => post(many, join(home, "sock/agent.sock"), { cwd: project, ...body }, "/v1/check");
  /** @param {Record<string, unknown>} body @param {string} [own] the agent whose own socket is asked */
  const ask = (body, own) =>
    post(agent, join(home, own === undefined ? "sock/agent.sock" : `sock/agents/${own}.sock`), {
      cwd: project,
      ...body,
    });
  try {
    await untilReady(() => ask({ agent_id: "ready", cmd: "true" }), child);
  } catch (error) {
    await stop();
    throw error;
  }
  return { pid: child.pid ?? 0, project, home, ask, check, stop };
}

/** The shipped policy with some of its text replaced; each replaced text must be there. @param {Record<string, string>} changes */
export function shippedPolicy(changes = {}) {
  let text = readFileSync(join(CHECKOUT, "policies/default.yaml"), "utf8");
  for (const [from, to] of Object.entries(changes)) {
    if (!text.includes(from)) throw new Error(`The shipped policy does not hold '${from}'`);
    text = text.replace(from, to);
  }
  return text;
}

/** @typedef {{ exit: number, stdout_b64: string, world_id: string, decision: { verdict: string }, fs_diff: { writes: string[], mods: string[], summary: string | null } }} Reply */

/**
 * @param {Agent} agent
 * @param {string} socketPath
 * @param {Record<string, unknown>} document
 * @param {string} [path]
 * @returns {Promise<Reply>} rejects for any status but 200
 */
function post(agent, socketPath, document, path = "/v1/execute") {
  const body = JSON.stringify(document);
  const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
  return new Promise((resolve, reject) => {
    const outgoing = request({ socketPath, path, method: "POST", agent, headers }, (response) => {
      /** @type {Buffer[]} */
      const parts = [];
      response.on("data", (chunk) => parts.push(chunk));
      response.on("end", () => {
        const text = Buffer.concat(parts).toString("utf8");
        if (response.statusCode === 200) resolve(JSON.parse(text));
        else reject(new Error(`The broker answered ${response.statusCode}: ${text}`));
      });
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

/**
 * An answer of the broker ends the wait, whatever it says: what is wrong then stays wrong.
 * @param {() => Promise<unknown>} run
 * @param {import("node:child_process").ChildProcess} child
 */
async function untilReady(run, child) {
  for (const end = Date.now() + READY_MS; ; ) {
    try {
      return await run();
    } catch (error) {
      const answered = error instanceof Error && error.message.startsWith("The broker answered");
      if (answered || Date.now() > end || child.exitCode !== null) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
