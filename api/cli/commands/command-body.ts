import { lstatSync } from "node:fs";
import { join } from "node:path";
import type { Terminal } from "../terminal.ts";

export type CommandOptions = { readonly agent?: string; readonly profile?: string };

/** What `exec` and `check` send. One word is a shell command; several are a program and its arguments. */
export function commandBody(
  terminal: Terminal,
  words: readonly string[],
  options: CommandOptions,
): Record<string, unknown> {
  const { SUBSTRATE_PROFILE } = terminal.environment;
  const profile = options.profile ?? SUBSTRATE_PROFILE;
  return {
    agent_id: agentOf(terminal, options),
    cwd: terminal.cwd,
    ...(words.length === 1 ? { cmd: words[0] } : { argv: words }),
    ...(profile === undefined ? {} : { profile }),
  };
}

/** Where that is sent: an agent with a socket of its own is refused on the one that all others share. */
export function commandSocket(terminal: Terminal, options: CommandOptions): string {
  const { home } = terminal;
  const agent = agentOf(terminal, options);
  if (!AGENT_NAME.test(agent)) return home.agentSocket;
  const own = join(home.agentSockets, `${agent}.sock`);
  return lstatSync(own, { throwIfNoEntry: false })?.isSocket() === true ? own : home.agentSocket;
}

/** As in config.yaml: no name leads to another folder. */
const AGENT_NAME = /^[A-Za-z0-9._:@-]{1,128}$/;

function agentOf(terminal: Terminal, options: CommandOptions): string {
  return options.agent ?? terminal.environment["SUBSTRATE_AGENT_ID"] ?? "human";
}
