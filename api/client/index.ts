/** The client for programs: `import { connect } from "substrate"`. */
import { lstatSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import type {
  Approval,
  ApprovalDecision,
  ApprovalDecisionReply,
  ApprovalPreviewReply,
  ApprovalsReply,
  CheckReply,
  ExecuteReply,
  ExecuteRequest,
  ReplayReply,
  RequestScopesReply,
  RequestScopesRequest,
} from "../../schemas/generated/types.ts";
import { Calls, type CallOptions } from "./calls.ts";
import { Command, type StreamRequest } from "./command.ts";

export type * from "../../schemas/generated/types.ts";
export { SubstrateError, type SubstrateErrorCode } from "./errors.ts";
export { Calls, type CallOptions, type SpanFilter } from "./calls.ts";
export {
  Command,
  type CommandSignal,
  type Exit,
  type Output,
  type Started,
  type StreamRequest,
} from "./command.ts";

export type ConnectOptions = {
  /** Default: SUBSTRATE_HOME, else `~/.substrate`. */
  readonly home?: string;
  /** Who calls: the agent's own socket is used where config.yaml names the agent. Default: SUBSTRATE_AGENT_ID, else `sdk`. */
  readonly agent?: string;
  /** A socket to call instead of the home's. */
  readonly socket?: string;
};

/** The fields of an execute call. `cwd`: by default the folder of this process. */
export type ExecuteOptions = Partial<Pick<ExecuteRequest, "agent_id">> &
  Omit<ExecuteRequest, "agent_id" | "pty" | "format" | "stdin_b64"> & {
    /** All of standard input. */
    readonly stdin?: string | Uint8Array;
  };

/** The reply of an execute call, with the outputs as text too. */
export type ExecuteResult = ExecuteReply & { readonly stdout: string; readonly stderr: string };

/** Describes the way to a broker; the connection is made by each call. */
export function connect(options: ConnectOptions = {}): Substrate {
  const home = resolve(options.home ?? variable("SUBSTRATE_HOME") ?? join(homedir(), ".substrate"));
  const agent = options.agent ?? variable("SUBSTRATE_AGENT_ID") ?? "sdk";
  return new Substrate(options.socket ?? socketOf(home, agent), agent, join(home, "sock/control.sock"));
}

/** An agent's calls. */
export class Substrate extends Calls {
  readonly agent: string;
  /** The operator's calls, for whoever may open the operator's socket. */
  readonly operator: Operator;

  constructor(socket: string, agent: string, control: string) {
    super(socket);
    this.agent = agent;
    this.operator = new Operator(control);
  }

  /** Runs a command and resolves after its end, whatever its exit code. An abort ends the command. */
  async execute(command: string | ExecuteOptions, options?: CallOptions): Promise<ExecuteResult> {
    const { stdin, ...request } = typeof command === "string" ? { cmd: command } : command;
    const input =
      stdin === undefined ? {} : { stdin_b64: Buffer.from(stdin as Uint8Array).toString("base64") };
    const body = { ...this.#caller(), ...request, ...input };
    const reply: ExecuteReply = await this.ask("POST", "/v1/execute", body, options);
    return { ...reply, stdout: text(reply.stdout_b64), stderr: text(reply.stderr_b64) };
  }

  /** Starts a command with pipes, or with `pty: true` a terminal. `stdin: true`: it takes input. */
  stream(command: string | StreamRequest, { signal }: CallOptions = {}): Command {
    const request = typeof command === "string" ? { cmd: command } : command;
    const stdin = request.pty === true;
    return new Command(this.socket, "/v1/stream", { ...this.#caller(), stdin, ...request }, signal);
  }

  /** Takes up a command that was started with `on_disconnect: "detach"`. */
  attach(span: string, { signal }: CallOptions = {}): Command {
    return new Command(this.socket, `/v1/stream/${encodeURIComponent(span)}`, undefined, signal);
  }

  /** The verdict on a command; runs nothing. */
  check(command: string | ExecuteOptions, options?: CallOptions): Promise<CheckReply> {
    const { stdin: _stdin, ...request } = typeof command === "string" ? { cmd: command } : command;
    return this.ask("POST", "/v1/check", { ...this.#caller(), ...request }, options);
  }

  /** Asks for more than the policy gives. */
  requestScopes(
    request: Partial<Pick<RequestScopesRequest, "agent_id">> & Omit<RequestScopesRequest, "agent_id">,
    options?: CallOptions,
  ): Promise<RequestScopesReply> {
    return this.ask("POST", "/v1/request_scopes", { ...this.#caller(), ...request }, options);
  }

  /** Runs a recorded command again in a fresh world and compares. */
  replay(span: string, options?: CallOptions): Promise<ReplayReply> {
    return this.ask("POST", `/v1/replay/${encodeURIComponent(span)}`, {}, options);
  }

  #caller(): { readonly agent_id: string; readonly cwd: string } {
    return { agent_id: this.agent, cwd: process.cwd() };
  }
}

/** A person's calls: spans and changes of every agent, and answers to questions. */
export class Operator extends Calls {
  /** Questions that wait for an answer. */
  async approvals(options?: CallOptions): Promise<readonly Approval[]> {
    const { approvals }: ApprovalsReply = await this.ask("GET", "/v1/approvals", undefined, options);
    return approvals;
  }

  decide(
    approval: string,
    decision: ApprovalDecision,
    options?: CallOptions,
  ): Promise<ApprovalDecisionReply> {
    return this.ask("POST", `/v1/approvals/${encodeURIComponent(approval)}`, { decision }, options);
  }

  /** What the command in question would change. */
  preview(approval: string, options?: CallOptions): Promise<ApprovalPreviewReply> {
    return this.ask("POST", `/v1/approvals/${encodeURIComponent(approval)}/preview`, {}, options);
  }
}

/** An empty variable counts as unset. */
function variable(name: string): string | undefined {
  const value = process.env[name];
  return value === "" ? undefined : value;
}

/** A name of config.yaml has a socket of its own; no other name leads to another folder. */
function socketOf(home: string, agent: string): string {
  const own = join(home, "sock/agents", `${agent}.sock`);
  const isOwn =
    /^[A-Za-z0-9._:@-]{1,128}$/.test(agent) && lstatSync(own, { throwIfNoEntry: false })?.isSocket() === true;
  return isOwn ? own : join(home, "sock/agent.sock");
}

function text(base64: string): string {
  return Buffer.from(base64, "base64").toString("utf8");
}
