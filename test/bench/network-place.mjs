/** Where network.mjs measures: the tests' internet, a broker in it, and the program that is both ends of a connection. */
import { spawn, spawnSync } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";
import { startBroker } from "./bench-broker.mjs";

const CHECKOUT = fileURLToPath(new URL("../..", import.meta.url));
const INTERNET = join(CHECKOUT, "test/support/network");
/** In the tests' zone. */
export const NAME = "files.example.test";
export const ADDRESS = "203.0.113.20";
const RESOLVER = "203.0.113.53:53";
export const PORT = 9100;
/** The internet's own, which tells how much it has received. */
export const SINK = 9000;
export const BUDGET = 1_000_000;

/** Each has a policy of its own name. `names` and `none` make a new world for each command. */
const POLICIES = {
  open: policyText("open", [`${NAME}:${PORT}`]),
  budget: policyText("budget", [`${NAME}:${SINK}`], `\n  egress_budget: { total_bytes: ${BUDGET} }`),
  names: policyText("names", [`${NAME}:${PORT}`, "*.wild.example.test"], "\nworld: { reuse_session: false }"),
  none: policyText("none", [], "\nworld: { reuse_session: false }"),
};

/** @typedef {Awaited<ReturnType<typeof openPlace>>} Place */

/** A server at every address of the internet, and clients beside it (`direct`) and in a world (`governed`). */
export async function openPlace() {
  const folder = mkdtempSync(join(tmpdir(), "substrate-bench-network-"));
  /** @type {(() => unknown)[]} */
  const undo = [() => rmSync(folder, { recursive: true, force: true })];
  const close = async () => {
    for (const step of undo.splice(0).reverse()) await step();
  };
  try {
    const program = compile(folder);
    const internet = await openInternet(folder);
    undo.push(() => internet.close());
    const server = await serve(internet.enter, program);
    undo.push(() => server.kill("SIGKILL"));
    const broker = await startBroker({
      policies: { default: policyText("default", []), ...POLICIES },
      config: `agents:\n${Object.keys(POLICIES)
        .map((name) => `  ${name}: { policy: ${name} }\n`)
        .join("")}`,
      project: (project) => copyFileSync(program, join(project, "peer")),
      within: internet.enter,
    });
    undo.push(() => broker.stop());
    return { folder, program, internet, broker, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** What the program prints in a world of an agent. @param {Place} place @param {string} words @param {string} [agent] */
export async function governed({ broker }, words, agent = "open") {
  const reply = await broker.ask({ cmd: `./peer ${words} 2>&1`, timeout_ms: 120_000 }, agent);
  const text = Buffer.from(reply.stdout_b64, "base64").toString("utf8");
  if (reply.exit !== 0) throw new Error(`'peer ${words}' ended with ${reply.exit} in a world: ${text}`);
  return numbersIn(text);
}

/** What it prints in the internet itself. @param {Place} place @param {string} words @param {readonly string[]} [before] */
export async function direct({ internet, program }, words, before = []) {
  const { code, stdout, stderr } = await internet.run([...before, program, ...words.split(" ")]);
  if (code !== 0) throw new Error(`'${[...before, "peer", words].join(" ")}' ended with ${code}: ${stderr}`);
  return numbersIn(stdout);
}

/** @param {string} text a number in each line */
function numbersIn(text) {
  return text.trim().split("\n").map(Number);
}

/** @param {string} folder @returns {string} */
function compile(folder) {
  const program = join(folder, "peer");
  const source = join(CHECKOUT, "test/bench/network-peer.c");
  const made = spawnSync("cc", ["-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", program, source]);
  if (made.status !== 0) throw new Error(`'${source}' does not compile: ${made.stderr.toString()}`);
  return program;
}

/**
 * Node runs no TypeScript. What it starts itself is looked for beside its source, so that stays its folder.
 * @param {string} folder
 */
async function openInternet(folder) {
  const outfile = join(folder, "internet.mjs");
  symlinkSync(join(CHECKOUT, "node_modules"), join(folder, "node_modules"));
  await build({
    entryPoints: [join(INTERNET, "internet.ts")],
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    external: ["esbuild", "vitest"],
    define: { "import.meta.dirname": JSON.stringify(INTERNET) },
    outfile,
    logLevel: "error",
  });
  /** @type {typeof import("../support/network/internet.ts")} */
  const { TestInternet } = await import(pathToFileURL(outfile).href);
  return TestInternet.open();
}

/** @param {readonly string[]} enter @param {string} program */
async function serve(enter, program) {
  const [first = program, ...words] = enter;
  const server = spawn(first, [...words, program, "serve", String(PORT)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await new Promise((resolve, reject) => {
    server.stdout.once("data", resolve);
    server.once("exit", (code) => reject(new Error(`The server ended with ${code}`)));
  });
  return server;
}

/** @param {string} id @param {readonly string[]} allowed @param {string} [more] */
function policyText(id, allowed, more = "") {
  return `id: ${id}
name: Bench
mode: enforce
net:
  allowed: ${JSON.stringify(allowed)}
  dns: { servers: ["${RESOLVER}"], refresh_secs: 60 }${more}
`;
}
