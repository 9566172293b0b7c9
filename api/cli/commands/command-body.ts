import { isSocket } from "../../../broker/model/host-paths.ts";
import { join } from "node:path";
import { refuseMisspeltAgent } from "../terminal/agent-name.ts";
import { Complaint, type Terminal } from "../terminal/terminal.ts";
import { areWordsText, callerShell, setVariables } from "./caller-shell.ts";

export type WhoseOptions = { readonly agent?: string; readonly profile?: string };

export type CommandOptions = WhoseOptions & {
  readonly shell?: string;
  readonly env?: readonly string[];
};

/** What `exec` and `check` send. One word is a shell command; several are a program and its arguments. */
export function commandBody(
  terminal: Terminal,
  words: readonly string[],
  options: CommandOptions,
): Record<string, unknown> {
  if (!areWordsText())
    throw new Complaint("Cannot send the command: a word is not UTF-8, and the broker would get another one");
  return {
    ...spotOf(terminal, options),
    ...wordsOf(words, options.shell),
    ...callerShell(terminal),
    ...setVariables(terminal, options.env),
  };
}

const SHELLS: readonly string[] = ["sh", "bash"];

function wordsOf(words: readonly string[], shell: string | undefined): Record<string, unknown> {
  if (shell !== undefined && !SHELLS.includes(shell))
    throw new Complaint(`Cannot use '${shell}' as --shell: it must be sh or bash`);
  if (words.length === 1) return { cmd: words[0], ...(shell === undefined ? {} : { shell }) };
  if (shell === undefined) return { argv: words };
  throw new Complaint(
    "Cannot use --shell with several words: no shell reads them, they are a program and its arguments. Quote the command as one word",
  );
}

/** Whose world, as a request has it. */
export function spotOf(terminal: Terminal, options: WhoseOptions): Record<string, string> {
  const profile = options.profile ?? variable(terminal, "SUBSTRATE_PROFILE");
  return {
    agent_id: agentOf(terminal, options),
    cwd: terminal.cwd,
    ...(profile === undefined ? {} : { profile }),
  };
}

/** The span that a command belongs below, when whoever called us is one's. */
export function parentSpan(terminal: Terminal): Record<string, string> {
  const parent = variable(terminal, "SUBSTRATE_PARENT_SPAN");
  return parent === undefined ? {} : { parent_span: parent };
}

/**
 * Where that is sent. An agent with a socket of its own is refused on the one that all others share. A person's command goes
 * to the operator's socket: a folder that a person works in is a project, whoever made its `.git`.
 */
export function commandSocket(terminal: Terminal, options: WhoseOptions): string {
  const { home } = terminal;
  if (isWorldDisabled(terminal)) return home.controlSocket;
  const agent = agentOf(terminal, options);
  if (!AGENT_NAME.test(agent)) return home.agentSocket;
  const own = join(home.agentSockets, `${agent}.sock`);
  if (isSocket(own)) return own;
  return agent === PERSON && isSocket(home.controlSocket) ? home.controlSocket : home.agentSocket;
}

/** Whether the person has this command run on the host, by the same policy. */
export function isWorldDisabled(terminal: Terminal): boolean {
  return terminal.environment["SUBSTRATE_WORLD"] === "disabled";
}

/** Throws for a verb whose programs have a terminal, which only a world gives. */
export function refuseWithoutWorld(terminal: Terminal, verb: string): void {
  if (isWorldDisabled(terminal))
    throw new Complaint(
      `Cannot run 'substrate ${verb}' with SUBSTRATE_WORLD=disabled: its terminal is a world's. Use 'substrate exec', or unset the variable`,
    );
}

/** Who calls, when nobody says otherwise. */
export const PERSON = "human";

/** As in config.yaml: no name leads to another folder. */
const AGENT_NAME = /^[A-Za-z0-9._:@-]{1,128}$/;

export function agentOf(terminal: Terminal, options: WhoseOptions): string {
  if (options.agent !== undefined) refuseMisspeltAgent(terminal, options.agent);
  return options.agent ?? variable(terminal, "SUBSTRATE_AGENT_ID") ?? PERSON;
}

/** An empty variable is one that is not set: a script has no other way to take one back for a single command. */
export function variable({ environment }: Terminal, name: string): string | undefined {
  return environment[name] === "" ? undefined : environment[name];
}
