import { existsSync } from "node:fs";
import { basename } from "node:path";
import { loadPolicy, lostDenials } from "../../../broker/policy/index.ts";
import type {
  AgentSession,
  ApprovalsReply,
  HealthReply,
  HeldReply,
  SessionsReply,
  SpansReply,
} from "../../../schemas/generated/types.ts";
import { isAnswered } from "../../serve/sockets.ts";
import { foundConnection, type FoundConnection } from "../init/found.ts";
import { connections } from "../init/records.ts";
import { ageWords, sizeWords } from "../words/amounts.ts";
import { connectionWords } from "../words/init-words.ts";
import { readBrokerFile } from "../terminal/broker-file.ts";
import { type Colours, coloursFor } from "../words/colours.ts";
import { sessionWords } from "../words/session-words.ts";
import { ownPolicyFiles, policyFile } from "../terminal/policy-files.ts";
import { ask } from "../terminal/replies.ts";
import { printRows } from "../terminal/rows.ts";
import { harmlessExcerpt, harmlessLine, printJson, type Terminal } from "../terminal/terminal.ts";

type PolicyState = {
  readonly name: string;
  readonly mode: string | null;
  readonly problem: string | null;
  readonly notes: readonly string[];
};

type World = Pick<HealthReply["worlds"][number], "world_id" | "agent_id" | "project" | "running">;

type Connected = FoundConnection & {
  readonly agent_id: string;
  /** Null: none is in the trace, or no broker runs. */
  readonly last_command: { readonly cmd: string; readonly ts: string } | null;
  /** The session that was active last; null: none is known, or no broker runs. */
  readonly session: AgentSession | null;
};

type Status = {
  readonly broker: {
    readonly running: boolean;
    readonly pid: number | null;
    readonly version: string | null;
    readonly started_at: string | null;
    readonly installation: string | null;
  };
  readonly policy: PolicyState;
  readonly worlds: readonly World[];
  /** Agents that config.yaml lists, with their own sockets. */
  readonly agents: readonly { readonly agent_id: string; readonly socket: string }[];
  /** Agents that `substrate init` connected. */
  readonly connected: readonly Connected[];
  readonly approvals: readonly {
    readonly approval_id: string;
    readonly agent_id: string;
    readonly command: string;
  }[];
  readonly held: { readonly commands: number; readonly paths: number; readonly bytes: number };
};

/** Everything that a person looks for first. Exit 1 when no broker runs, or the default policy does not load. */
export async function showStatus(terminal: Terminal, json: boolean): Promise<number> {
  const running = await isAnswered(terminal.home.controlSocket);
  const status = running ? await statusOf(terminal) : await stopped(terminal);
  if (json) printJson(terminal, status);
  else print(terminal, status);
  return running && status.policy.problem === null ? 0 : 1;
}

async function statusOf(terminal: Terminal): Promise<Status> {
  const file = readBrokerFile(terminal);
  const health = await ask<HealthReply>(terminal, "/v1/health");
  const { approvals } = await ask<ApprovalsReply>(terminal, "/v1/approvals");
  const { held, more } = await ask<HeldReply>(terminal, "/v1/held");
  const sum = (counts: readonly (number | null)[]): number =>
    counts.reduce<number>((total, count) => total + (count ?? 0), 0);
  return {
    broker: {
      running: true,
      pid: file?.pid ?? null,
      version: health.version,
      started_at: file?.started_at ?? null,
      installation: file?.installation ?? null,
    },
    policy: policyState(terminal),
    worlds: health.worlds.map(({ world_id, agent_id, project, running = 0 }) => ({
      world_id,
      agent_id,
      project,
      running,
    })),
    agents: Object.entries(file?.sockets.agents ?? {}).map(([agent_id, socket]) => ({ agent_id, socket })),
    connected: await connectedAgents(terminal, async (agent) => ({
      last_command: await lastCommand(terminal, agent),
      session: await lastSession(terminal, agent),
    })),
    approvals: approvals.map(({ approval_id, agent_id, subject }) => ({
      approval_id,
      agent_id,
      command: subject.cmd ?? subject.argv?.join(" ") ?? subject.scopes?.join(", ") ?? "",
    })),
    held: {
      commands: held.length + more,
      paths: sum(held.map(({ paths }) => paths)),
      bytes: sum(held.map(({ bytes }) => bytes)),
    },
  };
}

/** The agents that `substrate init` connected, each with its last command and session: two requests per connection. */
async function connectedAgents(
  { home }: Terminal,
  last: (agent: string) => Promise<Pick<Connected, "last_command" | "session">>,
): Promise<readonly Connected[]> {
  return await Promise.all(
    connections(home).map(async (connection) => ({
      agent_id: connection.agent,
      ...foundConnection(connection),
      ...(await last(connection.agent)),
    })),
  );
}

async function lastCommand(terminal: Terminal, agent: string): Promise<Connected["last_command"]> {
  const query = `limit=${LOOKED_THROUGH}&agent_id=${encodeURIComponent(agent)}`;
  const { spans } = await ask<SpansReply>(terminal, `/v1/spans?${query}`);
  const [last] = spans.flatMap(({ event_type: type, cmd, ts }) =>
    type.startsWith("command") && cmd !== null ? [{ cmd, ts }] : [],
  );
  return last ?? null;
}

async function lastSession(terminal: Terminal, agent: string): Promise<AgentSession | null> {
  const query = `limit=1&agent_id=${encodeURIComponent(agent)}`;
  const { sessions } = await ask<SessionsReply>(terminal, `/v1/sessions?${query}`);
  return sessions[0] ?? null;
}

async function stopped(terminal: Terminal): Promise<Status> {
  return {
    broker: { running: false, pid: null, version: null, started_at: null, installation: null },
    policy: policyState(terminal),
    worlds: [],
    agents: [],
    connected: await connectedAgents(terminal, () => Promise.resolve({ last_command: null, session: null })),
    approvals: [],
    held: { commands: 0, paths: 0, bytes: 0 },
  };
}

/** Of the policy that holds where config.yaml assigns no other. Before the first start that is the shipped one. */
function policyState(terminal: Terminal): PolicyState {
  const file = policyFile(terminal, "default");
  const name = basename(file, ".yaml");
  const result = loadPolicy(file, terminal.installation.policies);
  const notes = ownPolicyFiles(terminal).flatMap((each) => lostIn(terminal, each));
  return "ok" in result
    ? { name, mode: result.ok.mode, problem: null, notes }
    : { name, mode: null, problem: result.problems[0]?.text ?? "does not load", notes };
}

/** Built-in denials that a policy file of the operator's replaces. */
function lostIn(terminal: Terminal, file: string): readonly string[] {
  const result = loadPolicy(file, terminal.installation.policies);
  return "ok" in result ? lostDenials(result.ok.document).map((note) => `${basename(file)}: ${note}`) : [];
}

const MOST = 120;

/** Spans of an agent among which its last command is looked for: refusals and connections have spans too. */
const LOOKED_THROUGH = 20;

function print(terminal: Terminal, status: Status): void {
  const colours = coloursFor(terminal);
  const row = (name: string, text: string): void => printRows(terminal, `${name.padEnd(10)} ${text}`);
  row("broker", brokerWords(terminal, status));
  row("policy", policyWords(colours, status.policy));
  for (const note of status.policy.notes) row("", colours.yellow(harmlessLine(note)));
  for (const each of status.connected) {
    row(each === status.connected[0] ? "connected" : "", connectedWords(each));
    if (each.session !== null) row("", `  session ${sessionWords(each.session, Date.now())}`);
  }
  if (!status.broker.running) return;
  row("worlds", status.worlds.length === 0 ? "none is warm" : `${status.worlds.length} warm`);
  for (const { agent_id: agent, project, running = 0 } of status.worlds)
    row(
      "",
      `${harmlessLine(agent)} in ${harmlessLine(project)}${running === 0 ? "" : `, ${running} running`}`,
    );
  if (status.agents.length > 0)
    row("agents", status.agents.map(({ agent_id: agent }) => harmlessLine(agent)).join(", "));
  const { approvals, held } = status;
  row(
    "approvals",
    approvals.length === 0 ? "no command waits for approval" : waiting(colours, approvals.length),
  );
  for (const { approval_id: id, agent_id: agent, command } of approvals)
    row("", `${id}  ${harmlessLine(agent)}  ${harmlessExcerpt(command, MOST)}`);
  row(
    "held",
    held.commands === 0
      ? "no changes wait to be applied"
      : `changes of ${held.commands === 1 ? "1 command" : `${held.commands} commands`}: ${held.paths} paths, ${sizeWords(held.bytes)} ('substrate held --all')`,
  );
}

function connectedWords(connected: Connected): string {
  const { agent_id: agent, last_command: last } = connected;
  const command =
    last === null ? "" : `; ${ageWords(last.ts, Date.now())}: ${harmlessExcerpt(last.cmd, MOST)}`;
  return `${harmlessLine(agent)}, ${connectionWords(connected, harmlessLine(agent))}${command}`;
}

function waiting(colours: Colours, count: number): string {
  return colours.yellow(
    `${count === 1 ? "1 question waits" : `${count} questions wait`} ('substrate approvals')`,
  );
}

function brokerWords({ installation, home }: Terminal, { broker }: Status): string {
  if (!broker.running)
    return existsSync(home.root)
      ? "does not run ('substrate broker start')"
      : `does not run, and '${home.root}' does not exist yet ('substrate broker start' creates it)`;
  const since = broker.started_at === null ? "" : `, started ${ageWords(broker.started_at, Date.now())}`;
  const other =
    broker.installation === null || broker.installation === installation.root
      ? ""
      : `, from '${harmlessLine(broker.installation)}'`;
  return `runs (pid ${broker.pid ?? "unknown"}, version ${broker.version ?? "unknown"}${since}${other})`;
}

function policyWords(colours: Colours, { name, mode, problem }: PolicyState): string {
  if (problem !== null) return colours.red(`${name} does not load: ${harmlessLine(problem)}`);
  return mode === "observe"
    ? `${name} ${colours.yellow("only observes")}: no command is stopped or held ('mode: enforce' does that)`
    : `${name} enforces`;
}
