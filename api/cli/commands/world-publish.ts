import type { WorldPublishReply } from "../../../schemas/generated/types.ts";
import { coloursFor } from "../words/colours.ts";
import { tell } from "../terminal/replies.ts";
import { Complaint, harmlessLine, printJson, printLine, type Terminal } from "../terminal/terminal.ts";
import { spotOf } from "./command-body.ts";

export type PublishOptions = {
  readonly agent?: string;
  readonly hostPort?: string;
  readonly close?: boolean;
  readonly json?: boolean;
};

/** Opens a port of the host that leads into the world of this folder, or closes it. */
export async function publishPort(
  terminal: Terminal,
  port: string,
  { agent, hostPort, close, json }: PublishOptions,
): Promise<number> {
  const body = {
    ...spotOf(terminal, agent === undefined ? {} : { agent }),
    port: portOf(port, "PORT"),
    ...(hostPort === undefined ? {} : { host_port: portOf(hostPort, "--host-port") }),
    ...(close === true ? { close } : {}),
  };
  const reply = await tell<WorldPublishReply>(terminal, "/v1/world/publish", body);
  if (json === true) printJson(terminal, reply);
  else printPublished(terminal, reply);
  return 0;
}

function portOf(text: string, name: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (port >= 1 && port <= 65_535) return port;
  throw new Complaint(`Cannot use '${text}' as ${name}: a port is a whole number from 1 to 65535`);
}

function printPublished(terminal: Terminal, reply: WorldPublishReply): void {
  const { state, port, host_port: hostPort, world_id: world } = reply;
  const address = coloursFor(terminal).bold(`127.0.0.1:${hostPort}`);
  const whose = `the world of agent ${reply.agent_id} in ${harmlessLine(reply.project)}`;
  const where = `port ${port} of ${whose}${world === null ? "" : ` (${world})`}`;
  const sentences = {
    opened: `${address} leads to ${where}`,
    was_open: `${address} already leads to ${where}`,
    closed: `${address} is closed; it led to ${where}`,
    kept: `${address} still leads to ${where}: your request is withdrawn, but the world's policy publishes the port`,
  };
  printLine(terminal, sentences[state]);
}
