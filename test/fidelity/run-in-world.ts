/** A row through the broker, as an agent sends it or as a person types it. */
import { join } from "node:path";
import { call } from "../../api/client/client.ts";
import type { ChangesReply, ErrorReply, ExecuteReply } from "../../schemas/generated/types.ts";
import type { TestBroker } from "../support/broker/broker.ts";
import type { Command, Ended } from "./run-bare.ts";
import type { PolicyName } from "./workload.ts";

export type EndedInWorld = Ended & { readonly told: readonly string[] };
export type RunningInWorld = { readonly ended: Promise<EndedInWorld>; readonly end: () => void };

/** Longer than any row takes. */
const TIMEOUT_MS = 60_000;

export function runByApi(broker: TestBroker, policy: PolicyName, command: Command): RunningInWorld {
  const leaving = new AbortController();
  const { stdin, shell, cwd, cmd, env } = command;
  const body = {
    ...{ agent_id: policy, cwd, cmd, shell, env, timeout_ms: TIMEOUT_MS },
    ...(stdin === undefined ? {} : { stdin_b64: Buffer.from(stdin).toString("base64") }),
  };
  const asked = call(socketOf(broker, policy), "POST", "/v1/execute", body, leaving.signal);
  return { ended: answered(broker, asked, leaving.signal), end: () => leaving.abort() };
}

async function answered(
  broker: TestBroker,
  asked: ReturnType<typeof call>,
  leaving: AbortSignal,
): Promise<EndedInWorld> {
  try {
    const { status, document } = await asked;
    if (status !== 200) return refusedAs((document as ErrorReply).error);
    return await ranAs(broker, document as ExecuteReply);
  } catch (error) {
    if (!leaving.aborted) throw error;
    return { exit: null, stdout: "", stderr: "", told: [] };
  }
}

function refusedAs({ code, message, hint, exit }: ErrorReply["error"]): EndedInWorld {
  const told = [`${code}: ${message}`, ...(hint === undefined || hint === null ? [] : [hint])];
  return { exit: exit ?? 125, stdout: "", stderr: "", told };
}

/** Held changes are applied, as whoever looked at them and wants them does. */
async function ranAs(broker: TestBroker, reply: ExecuteReply): Promise<EndedInWorld> {
  const applied = reply.fs_diff?.held === true ? await apply(broker, reply.span_id) : [];
  return {
    exit: reply.exit,
    stdout: Buffer.from(reply.stdout_b64, "base64").toString("latin1"),
    stderr: Buffer.from(reply.stderr_b64, "base64").toString("latin1"),
    told: [...reply.notices.map(({ kind, message }) => `${kind}: ${message}`), ...applied],
  };
}

async function apply(broker: TestBroker, span: string): Promise<string[]> {
  const { status, document } = await broker.operator("POST", `/v1/apply/${span}`, {});
  if (status !== 200) return [`apply: ${JSON.stringify(document)}`];
  const { left } = document as ChangesReply;
  return left.length === 0 ? [] : [`apply left ${JSON.stringify(left)}`];
}

/** `substrate exec`: its own sentences are lines of standard error that begin with its name. */
export function runByHand(broker: TestBroker, policy: PolicyName, command: Command): RunningInWorld {
  const who = policy === "default" ? [] : ["--agent", policy];
  const ended = broker
    .cli(["exec", ...who, "--", command.cmd], {
      cwd: command.cwd,
      env: command.env,
      ...(command.stdin === undefined ? {} : { stdin: command.stdin }),
    })
    .then(({ code, stdout, stderr }) => {
      const told = stderr.split("\n").filter((line) => line.startsWith("substrate: "));
      const own = stderr.replace(/^substrate: .*\n/gm, "");
      return { exit: code, stdout: latin1(stdout), stderr: latin1(own), told };
    });
  // A person at the prompt would press Ctrl-C; no row that is run by hand is ended from outside.
  return { ended, end: () => undefined };
}

function socketOf({ home }: TestBroker, policy: PolicyName): string {
  return join(home, policy === "default" ? "sock/agent.sock" : `sock/agents/${policy}.sock`);
}

function latin1(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}
