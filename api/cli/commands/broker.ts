import { spawn } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync, statSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { prepareHome } from "../../../broker/home.ts";
import type { BrokerFile } from "../../../schemas/generated/types.ts";
import { validateBrokerFile } from "../../../schemas/generated/validators.js";
import { claimedBy } from "../../serve/claim.ts";
import { isAnswered } from "../../serve/sockets.ts";
import { withoutNpm } from "./without-npm.ts";
import { Complaint, printJson, printLine, type Terminal } from "../terminal.ts";

const START_PATIENCE_MS = 30_000;
const STOP_PATIENCE_MS = 15_000;
const POLL_MS = 25;

export type StartOptions = { readonly foreground?: boolean; readonly current?: boolean };

/** Starts the broker, in this process or in one of its own, and returns once it answers. Safe to repeat. */
export async function startBroker(terminal: Terminal, options: StartOptions): Promise<number> {
  if (options.foreground === true) return await runHere(terminal);
  const runs = await isAnswered(terminal.home.agentSocket);
  if (runs && !isOlderThanBuild(terminal)) {
    printLine(terminal, `The broker runs already${pidWords(terminal)}`);
    return 0;
  }
  if (runs && options.current !== true) {
    printLine(terminal, `The broker runs already${pidWords(terminal)}, started before the last build`);
    printLine(terminal, "'substrate broker start --current' replaces it, and ends its worlds");
    return 0;
  }
  if (runs) await stopBroker(terminal);
  await startProcess(terminal, true);
  printLine(terminal, `The broker runs${pidWords(terminal)}: ${terminal.home.agentSocket}`);
  return 0;
}

async function runHere(terminal: Terminal): Promise<number> {
  const { runBroker } = await import("../../serve/process.ts");
  const { home, installation, createBackend, uid, cwd, environment } = terminal;
  await runBroker({ home, installation, createBackend, host: withoutNpm(environment), uid, cwd });
  return 0;
}

/**
 * Starts one in a process of its own, and returns once it answers. Throws {@link Complaint}.
 *
 * @param detached it outlives the terminal; without, Ctrl-C stops it together with whoever started it.
 */
export async function startProcess(terminal: Terminal, detached: boolean): Promise<void> {
  const { home, installation, environment } = terminal;
  prepareHome(home, terminal.uid);
  const log = openSync(`${home.log}.start`, "w", 0o600);
  const child = spawn(process.execPath, [installation.launcher, "broker", "start", "--foreground"], {
    detached,
    stdio: ["ignore", log, log],
    cwd: terminal.cwd,
    env: withoutNpm(environment),
  });
  closeSync(log);
  let gone = false;
  child.once("exit", () => {
    gone = true;
  });
  child.once("error", () => {
    gone = true;
  });
  let end = Date.now() + START_PATIENCE_MS;
  let logged = sizeOf(home.log);
  while (!(await isAnswered(home.agentSocket))) {
    // It says how far it is when it reads a trace whose index is lost.
    const now = sizeOf(home.log);
    if (now !== logged) end = Date.now() + START_PATIENCE_MS;
    logged = now;
    if (gone)
      throw new Complaint(`The broker did not start:\n${readFileSync(`${home.log}.start`, "utf8").trim()}`);
    if (Date.now() > end)
      throw new Complaint(
        `The broker did not answer, nor log a word, within ${START_PATIENCE_MS / 1000} s. Look into ${home.log}`,
      );
    await sleep(POLL_MS);
  }
  child.unref();
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** Stops the broker and waits until it is gone. Safe to repeat. */
export async function stopBroker(terminal: Terminal): Promise<number> {
  printLine(terminal, (await endBroker(terminal)) ? "The broker has stopped" : "The broker does not run");
  return 0;
}

/** The same without a word: whether one ran. Throws {@link Complaint} when it does not stop. */
export async function endBroker(terminal: Terminal): Promise<boolean> {
  if (!(await isAnswered(terminal.home.controlSocket))) return false;
  const file = readBrokerFile(terminal);
  if (file === undefined || claimedBy(terminal.home.startLock) !== file.pid) {
    throw new Complaint(
      `A broker answers, and '${terminal.home.brokerFile}' does not say which process it is. Stop it by its pid`,
    );
  }
  process.kill(file.pid, "SIGTERM");
  const end = Date.now() + STOP_PATIENCE_MS;
  while (isAlive(file.pid)) {
    if (Date.now() > end)
      throw new Complaint(`The broker (pid ${file.pid}) has not stopped within ${STOP_PATIENCE_MS / 1000} s`);
    await sleep(POLL_MS);
  }
  return true;
}

export async function brokerStatus(terminal: Terminal, json: boolean): Promise<number> {
  const running = await isAnswered(terminal.home.agentSocket);
  const file = running ? readBrokerFile(terminal) : undefined;
  if (json) printJson(terminal, { running, ...file });
  else if (file === undefined) printLine(terminal, running ? "The broker runs" : "The broker does not run");
  else {
    printLine(terminal, `The broker ${file.version} runs since ${file.started_at} (pid ${file.pid})`);
    printLine(terminal, `  agents    ${file.sockets.agent}`);
    printLine(terminal, `  operator  ${file.sockets.control}`);
    for (const [agent, path] of Object.entries(file.sockets.agents ?? {}))
      printLine(terminal, `  ${agent}  ${path}`);
  }
  return running ? 0 : 1;
}

export function brokerLogs(terminal: Terminal, lines: string): number {
  const count = Number(lines);
  if (!Number.isInteger(count) || count < 1)
    throw new Complaint(`Cannot show '${lines}' lines: a whole number from 1 is wanted`);
  if (!existsSync(terminal.home.log)) throw new Complaint(`There is no log yet at '${terminal.home.log}'`);
  const all = readFileSync(terminal.home.log, "utf8").trimEnd().split("\n");
  for (const line of all.slice(-count)) printLine(terminal, line);
  return 0;
}

function isOlderThanBuild(terminal: Terminal): boolean {
  const file = readBrokerFile(terminal);
  const built = terminal.installation.built.map((path) => statSync(path).mtimeMs);
  return file !== undefined && Math.max(...built) > Date.parse(file.started_at);
}

function pidWords(terminal: Terminal): string {
  const file = readBrokerFile(terminal);
  return file === undefined ? "" : ` (pid ${file.pid})`;
}

/** What the broker wrote; undefined when it is not there, or is not what a broker writes. */
function readBrokerFile(terminal: Terminal): BrokerFile | undefined {
  if (!existsSync(terminal.home.brokerFile)) return undefined;
  try {
    const file: unknown = JSON.parse(readFileSync(terminal.home.brokerFile, "utf8"));
    return validateBrokerFile(file) ? file : undefined;
  } catch {
    return undefined;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
