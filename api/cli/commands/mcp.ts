import { statSync } from "node:fs";
import { join, resolve } from "node:path";
import { isAnswered } from "../../serve/sockets.ts";
import { serveMcp } from "../../mcp/serve.ts";
import { refuseMisspeltAgent } from "../terminal/agent-name.ts";
import { refuseInside } from "../terminal/inside.ts";
import { Complaint, harmlessLine, type Terminal } from "../terminal/terminal.ts";
import { startProcess } from "./broker.ts";
import { variable } from "./command-body.ts";
import { timeLimit } from "../words/durations.ts";

export type McpWords = {
  readonly agent?: string;
  readonly profile?: string;
  readonly cwd?: string;
  readonly wait: string;
};

const AGENT = /^[A-Za-z0-9._:@-]{1,128}$/;

/** Serves MCP on standard input and output. Nothing else may be written to standard output. */
export async function mcpCommand(terminal: Terminal, words: McpWords): Promise<number> {
  refuseInside(terminal, "mcp");
  const { home, installation, err, stdin } = terminal;
  const agent = words.agent ?? "mcp";
  if (!AGENT.test(agent)) throw new Complaint(`Cannot use '${harmlessLine(agent)}' as --agent`);
  const startBroker = async (): Promise<void> => {
    if (!(await isAnswered(home.agentSocket))) await startProcess(terminal, true);
  };
  await startBroker();
  refuseMisspeltAgent(terminal, agent);
  return await serveMcp({
    version: installation.version,
    agent,
    profile: words.profile ?? variable(terminal, "SUBSTRATE_PROFILE"),
    cwd: words.cwd === undefined ? undefined : folderOf(resolve(terminal.cwd, words.cwd)),
    started: terminal.cwd,
    sockets: { shared: home.agentSocket, own: join(home.agentSockets, `${agent}.sock`) },
    waitMs: timeLimit(words.wait, "--wait"),
    stdin,
    complain: (text) => void err.write(`substrate: ${harmlessLine(text)}\n`),
    startBroker,
  });
}

function folderOf(path: string): string {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return path;
  throw new Complaint(`Cannot use '${harmlessLine(path)}' as --cwd: it is no folder`);
}
