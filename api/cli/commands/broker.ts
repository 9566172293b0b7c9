import { spawn } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Home, prepareHome } from "../../../broker/settings/home.ts";
import type { PolicyReloadReply } from "../../../schemas/generated/types.ts";
import { beginOf, claimedBy } from "../../serve/claim.ts";
import { isAnswered } from "../../serve/sockets.ts";
import type { InstalledService } from "../../startup/services.ts";
import { hostOf } from "../terminal/host.ts";
import { withoutNpm } from "./without-npm.ts";
import { readBrokerFile } from "../terminal/broker-file.ts";
import { tell } from "../terminal/replies.ts";
import { Complaint, harmlessLine, printJson, printLine, type Terminal } from "../terminal/terminal.ts";

const START_PATIENCE_MS = 30_000;
/** A start takes longer when the index of a long trace is lost. */
const SLOW_START_MS = 5_000;
const STOP_PATIENCE_MS = 15_000;
const POLL_MS = 25;

export type StartOptions = {
  readonly foreground?: boolean;
  readonly current?: boolean;
  /** Of the process that {@link startProcess} starts: nobody else looks after it. */
  readonly detached?: boolean;
  /** Started by a service manager, which hands over sockets and wants to hear. */
  readonly service?: boolean;
};

/** The service manager shall start the broker again at once, now that another version is installed (systemd/user/substrate.service). */
const EXIT_REPLACED = 75;

/** Starts the broker, in this process or in one of its own, and returns once it answers. Safe to repeat. */
export async function startBroker(terminal: Terminal, options: StartOptions): Promise<number> {
  if (options.foreground === true) return await runHere(terminal, options);
  const runs = await isBrokerThere(terminal);
  const unlike = runs ? unlikeThisBuild(terminal) : undefined;
  if (runs && (unlike === undefined || options.current !== true)) {
    const words = unlike === undefined ? "" : `, ${unlike}`;
    printLine(terminal, `The broker is already running${pidWords(terminal)}${words}`);
    if (unlike !== undefined)
      printLine(terminal, "'substrate broker start --current' replaces the broker and ends its worlds");
    await sayUnloaded(terminal);
    return 0;
  }
  if (runs) {
    printLine(terminal, `Replacing the broker${pidWords(terminal)}, ${unlike ?? ""}`);
    await stopBroker(terminal);
  }
  await startProcess(terminal, true);
  printLine(terminal, `The broker runs${pidWords(terminal)}: ${terminal.home.agentSocket}`);
  await sayUnloaded(terminal);
  return 0;
}

/** Says which policies and settings do not load: the broker starts all the same, and denies what they would decide. */
async function sayUnloaded(terminal: Terminal): Promise<void> {
  const { policies, settings } = await tell<PolicyReloadReply>(terminal, "/v1/policy/reload", {});
  const say = (text: string): void => void terminal.err.write(`substrate: ${harmlessLine(text)}\n`);
  for (const { name, policy_hash: hash, problems } of policies.filter(
    ({ problems }) => problems.length > 0,
  )) {
    const holds = hash === null ? "it allows nothing" : "its last good version stays in force";
    say(`policy '${name}' does not load, so ${holds}: ${problems[0] ?? ""}`);
  }
  for (const problem of settings.problems.slice(0, 1))
    say(`config.yaml does not load, so the last good settings stay in force: ${problem}`);
}

async function runHere(terminal: Terminal, { detached, service }: StartOptions): Promise<number> {
  const { runBroker } = await import("../../serve/process.ts");
  const { serviceManager, withoutServiceManager } = await import("../../serve/service-manager.ts");
  const { home, installation, createBackend, uid, cwd, environment } = terminal;
  const manager = service === true ? serviceManager(environment, process.pid) : undefined;
  if (manager === undefined) await refuseBesideService(terminal);
  const host = withoutServiceManager(withoutNpm(environment));
  const followsInstallation = detached === true || manager !== undefined;
  const options = { home, installation, createBackend, host, uid, cwd, followsInstallation, manager };
  const ending = await runBroker(options).catch((error: unknown) => {
    throw withoutRoom(error, home) ?? error;
  });
  if (ending === "stopped") return 0;
  if (manager !== undefined) return EXIT_REPLACED;
  (await import("../../serve/replaced.ts")).startSuccessor(options);
  return 0;
}

/** Returns a sentence for an error of a full disk. */
function withoutRoom(error: unknown, { root }: Home): Complaint | undefined {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return ["ENOSPC", "EDQUOT"].includes(code)
    ? new Complaint(
        `The broker cannot start: '${root}' has no room (${code}). Free some space, then start it again`,
      )
    : undefined;
}

/**
 * Starts one in a process of its own, and returns once it answers. Throws {@link Complaint}.
 *
 * @param detached it outlives the terminal; without, Ctrl-C stops it together with whoever started it.
 */
export async function startProcess(terminal: Terminal, detached: boolean): Promise<void> {
  if (await startByService(terminal)) return;
  const { home, installation, environment } = terminal;
  prepareHome(home, terminal.uid);
  const log = openSync(`${home.log}.start`, "w", 0o600);
  const child = spawn(process.execPath, [installation.launcher, ...brokerWords(detached)], {
    detached,
    stdio: ["ignore", log, log],
    cwd: terminal.cwd,
    env: withoutNpm(environment),
  });
  closeSync(log);
  let gone = false;
  let endedBy: NodeJS.Signals | null = null;
  child.once("exit", (_, signal) => {
    gone = true;
    endedBy = signal;
  });
  child.once("error", () => {
    gone = true;
  });
  const began = Date.now();
  let end = began + START_PATIENCE_MS;
  let logged = sizeOf(home.log);
  let said = false;
  while (!(await isAnswered(home.agentSocket))) {
    if (!said && Date.now() - began > SLOW_START_MS) {
      terminal.err.write(`substrate: the broker is still starting; its progress is in '${home.log}'\n`);
      said = true;
    }
    // It says how far it is when it reads a trace whose index is lost.
    const now = sizeOf(home.log);
    if (now !== logged) end = Date.now() + START_PATIENCE_MS;
    logged = now;
    // Two starts at once: the other one has the claim, and answers soon.
    if (gone && claimedBy(home.startLock) === undefined) throw notStarted(home, endedBy);
    if (Date.now() > end)
      throw new Complaint(
        `The broker neither answered nor logged anything within ${START_PATIENCE_MS / 1000} s. See '${home.log}'`,
      );
    await sleep(POLL_MS);
  }
  child.unref();
}

/** Signals of the kernel and of LMDB for memory that cannot be read, as in a mapped file that is damaged. */
const CRASHES: readonly (NodeJS.Signals | null)[] = ["SIGBUS", "SIGSEGV", "SIGABRT"];

function notStarted({ log, database }: Home, signal: NodeJS.Signals | null): Complaint {
  const said = readFileSync(`${log}.start`, "utf8").trim();
  const ended = signal === null ? [] : [`It was ended by ${signal}`];
  // LMDB's own errors, wherever a page was needed first.
  const way =
    CRASHES.includes(signal) || said.includes("MDB_")
      ? [`If '${database}' is damaged, move that folder away: the broker rebuilds it from the trace`]
      : [];
  return new Complaint(
    ["The broker did not start:", ...[said, ...ended, ...way].filter((line) => line !== "")].join("\n"),
  );
}

/** The service of this home, whose manager answers. */
async function serviceHere(terminal: Terminal): Promise<InstalledService | undefined> {
  const { installedService } = await import("../../startup/services.ts");
  return installedService(hostOf(terminal));
}

/** Two brokers of one home would take the sockets from each other, so the service starts its own. */
async function startByService(terminal: Terminal): Promise<boolean> {
  const found = await serviceHere(terminal);
  if (found === undefined) return false;
  if (found.front !== terminal.installation.front)
    throw new Complaint(
      `The broker of this home is started by ${found.service.manager}, from '${harmlessLine(found.front)}'. 'substrate service install' makes it start this installation`,
    );
  found.service.start();
  return true;
}

/** Throws {@link Complaint} where a service starts the broker of this home. */
async function refuseBesideService(terminal: Terminal): Promise<void> {
  const found = await serviceHere(terminal);
  if (found === undefined) return;
  throw new Complaint(
    `The broker of this home is started by ${found.service.manager}: 'substrate broker start' asks it to. 'substrate service remove' ends that`,
  );
}

/** Whether a broker answers. The sockets of a service take connections without a broker too, and then start one: not for this question. */
async function isBrokerThere(terminal: Terminal): Promise<boolean> {
  const { home } = terminal;
  if (
    claimedBy(home.startLock) === undefined &&
    (await serviceHere(terminal))?.service.state().listens === true
  )
    return false;
  return await isAnswered(home.controlSocket);
}

function brokerWords(detached: boolean): readonly string[] {
  return ["broker", "start", "--foreground", ...(detached ? ["--detached"] : [])];
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** Stops the broker and waits until it is gone. Safe to repeat. */
export async function stopBroker(terminal: Terminal): Promise<number> {
  printLine(terminal, (await endBroker(terminal)) ? "The broker has stopped" : "The broker does not run");
  const found = await serviceHere(terminal);
  if (found?.service.state().listens === true)
    printLine(terminal, `The next command starts it again. To keep it down: ${found.service.words.stop}`);
  return 0;
}

/** The same without a word: whether one ran. Throws {@link Complaint} when it does not stop. */
export async function endBroker(terminal: Terminal): Promise<boolean> {
  if (!(await isBrokerThere(terminal))) return false;
  const file = readBrokerFile(terminal);
  if (file === undefined || claimedBy(terminal.home.startLock) !== file.pid) {
    throw new Complaint(
      `Cannot stop the broker: '${terminal.home.brokerFile}' does not name the process that answers. Find its pid and stop it with 'kill'`,
    );
  }
  const begin = beginOf(file.pid);
  process.kill(file.pid, "SIGTERM");
  const end = Date.now() + STOP_PATIENCE_MS;
  while (begin !== undefined && beginOf(file.pid) === begin) {
    if (Date.now() > end)
      throw new Complaint(
        `The broker (pid ${file.pid}) has not stopped within ${STOP_PATIENCE_MS / 1000} s. See '${terminal.home.log}'`,
      );
    await sleep(POLL_MS);
  }
  return true;
}

export async function brokerStatus(terminal: Terminal, json: boolean): Promise<number> {
  const running = await isBrokerThere(terminal);
  const file = running ? readBrokerFile(terminal) : undefined;
  if (json) printJson(terminal, { running, ...file });
  else if (file === undefined) printLine(terminal, running ? "The broker runs" : "The broker does not run");
  else {
    printLine(terminal, `The broker ${file.version} runs since ${file.started_at} (pid ${file.pid})`);
    printLine(terminal, `  agents    ${file.sockets.agent}`);
    printLine(terminal, `  operator  ${file.sockets.control}`);
    if (file.installation !== undefined && file.installation !== terminal.installation.root)
      printLine(
        terminal,
        `  program   ${harmlessLine(file.installation)} (this one: ${terminal.installation.root})`,
      );
    for (const [agent, path] of Object.entries(file.sockets.agents ?? {}))
      printLine(terminal, `  ${agent}  ${path}`);
  }
  return running ? 0 : 1;
}

export function brokerLogs(terminal: Terminal, lines: string): number {
  const count = Number(lines);
  if (!Number.isInteger(count) || count < 1)
    throw new Complaint(`Cannot show '${lines}' lines: a whole number from 1 is wanted`);
  if (!existsSync(terminal.home.log))
    throw new Complaint(`Cannot find the broker's log '${terminal.home.log}': no broker has started yet`);
  const all = readFileSync(terminal.home.log, "utf8").trimEnd().split("\n");
  for (const line of all.slice(-count)) printLine(terminal, line);
  return 0;
}

/** How the running broker's program differs from this one; undefined when it is the same. */
export function unlikeThisBuild(terminal: Terminal): string | undefined {
  const file = readBrokerFile(terminal);
  if (file === undefined) return undefined;
  const { installation } = terminal;
  const other = file.installation ?? installationOf(file.pid);
  if (other !== undefined && other !== installation.root)
    return `from another installation: '${harmlessLine(other)}' (version ${harmlessLine(file.version)})`;
  if (file.version !== installation.version) return `of version ${harmlessLine(file.version)}`;
  const built = installation.built.map((path) => statSync(path).mtimeMs);
  return Math.max(...built) > Date.parse(file.started_at) ? "started before the last build" : undefined;
}

/** Where the program of a broker lies that is too old to say it: its launcher is `api/bin/substrate.mjs` there. */
function installationOf(pid: number): string | undefined {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
    const launcher = words.find((word) => /^\/.*\/api\/bin\/substrate\.mjs$/.test(word));
    return launcher === undefined ? undefined : dirname(dirname(dirname(launcher)));
  } catch {
    return undefined;
  }
}

function pidWords(terminal: Terminal): string {
  const file = readBrokerFile(terminal);
  return file === undefined ? "" : ` (pid ${file.pid})`;
}
