import type { Terminal } from "../terminal.ts";

export type CommandOptions = { readonly agent?: string; readonly profile?: string };

/** What `exec` and `check` send. One word is a shell command; several are a program and its arguments. */
export function commandBody(
  terminal: Terminal,
  words: readonly string[],
  options: CommandOptions,
): Record<string, unknown> {
  const { SUBSTRATE_AGENT_ID, SUBSTRATE_PROFILE } = terminal.environment;
  const profile = options.profile ?? SUBSTRATE_PROFILE;
  return {
    agent_id: options.agent ?? SUBSTRATE_AGENT_ID ?? "human",
    cwd: terminal.cwd,
    ...(words.length === 1 ? { cmd: words[0] } : { argv: words }),
    ...(profile === undefined ? {} : { profile }),
  };
}
