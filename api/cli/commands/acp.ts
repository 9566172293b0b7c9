import { join } from "node:path";
import { serveAcp } from "../../acp/serve.ts";
import { whose } from "../../acp/whose.ts";
import { refuseMisspeltAgent } from "../terminal/agent-name.ts";
import { refuseInside } from "../terminal/inside.ts";
import { withoutGaps } from "../terminal/rows.ts";
import { Complaint, harmlessLine, type Terminal } from "../terminal/terminal.ts";
import { approvalLines } from "../words/approval-words.ts";
import { PLAIN } from "../words/colours.ts";
import { callerShell } from "./caller-shell.ts";
import { variable } from "./command-body.ts";

export type AcpWords = { readonly agent?: string; readonly profile?: string; readonly askEditor?: boolean };

const AGENT = /^[A-Za-z0-9._:@-]{1,128}$/;

/** Runs an agent behind the proxy. Nothing else may be written to standard output. */
export async function acpCommand(
  terminal: Terminal,
  words: readonly string[],
  options: AcpWords,
): Promise<number> {
  refuseInside(terminal, "acp");
  const { home } = terminal;
  const agent = options.agent ?? variable(terminal, "SUBSTRATE_AGENT_ID") ?? "acp";
  if (!AGENT.test(agent)) throw new Complaint(`Cannot use '${harmlessLine(agent)}' as --agent`);
  if (options.agent !== undefined) refuseMisspeltAgent(terminal, agent);
  const [program = "", ...more] = words;
  return await serveAcp({
    agent: [program, ...more],
    whose: whose({
      agent,
      profile: options.profile ?? variable(terminal, "SUBSTRATE_PROFILE"),
      sockets: { shared: home.agentSocket, own: join(home.agentSockets, `${agent}.sock`) },
      callerShell: callerShell(terminal),
    }),
    ask: {
      control: home.controlSocket,
      inEditor: options.askEditor === true,
      describe: (approval) => approvalLines(PLAIN, approval).map(withoutGaps),
    },
    complain: (text) => void terminal.err.write(`substrate: ${harmlessLine(text)}\n`),
    stdin: terminal.stdin,
    stdout: terminal.out,
  });
}
