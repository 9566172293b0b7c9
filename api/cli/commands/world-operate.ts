import type {
  EndedWorld,
  WarmedWorld,
  WorldRestartReply,
  WorldWarmReply,
} from "../../../schemas/generated/types.ts";
import { coloursFor } from "../words/colours.ts";
import { tell } from "../terminal/replies.ts";
import { printRows } from "../terminal/rows.ts";
import { saying } from "../words/saying.ts";
import { Complaint, harmlessLine, printJson, printLine, type Terminal } from "../terminal/terminal.ts";
import { PERSON, spotOf } from "./command-body.ts";
import { isolationLines } from "./world.ts";

export type WarmOptions = { readonly agent?: string; readonly profile?: string; readonly json?: boolean };
export type RestartOptions = WarmOptions & { readonly all?: boolean; readonly force?: boolean };

/** Makes the world of this folder's next command. */
export async function warmWorld(terminal: Terminal, options: WarmOptions): Promise<number> {
  const asked = tell<WorldWarmReply>(terminal, "/v1/world/warm", spotOf(terminal, options));
  const reply = await saying(terminal, "Starting the world", asked);
  if (options.json === true) printJson(terminal, reply);
  else printWarm(terminal, reply.world);
  return 0;
}

/** Ends the world of this folder and makes a new one; or ends them all. */
export async function restartWorld(terminal: Terminal, options: RestartOptions): Promise<number> {
  const { all, force, agent, profile } = options;
  if (all === true && (agent !== undefined || profile !== undefined))
    throw new Complaint("Cannot use --all together with --agent or --profile: --all ends every world");
  const body = {
    ...(all === true ? { all } : spotOf(terminal, options)),
    ...(force === true ? { force } : {}),
  };
  const asked = tell<WorldRestartReply>(terminal, "/v1/world/restart", body);
  const reply = await saying(terminal, all === true ? "Ending all worlds" : "Restarting the world", asked);
  if (options.json === true) printJson(terminal, reply);
  else printRestart(terminal, reply);
  return 0;
}

function printWarm(terminal: Terminal, world: WarmedWorld): void {
  const how = world.was_warm
    ? "was warm already"
    : `is warm, ready after ${world.duration_ms.toFixed(1)} ms with ${world.mounts} mounts`;
  printLine(terminal, `${coloursFor(terminal).bold(world.world_id)} ${how}`);
  const rows = [
    ["project", world.project],
    ["agent", world.agent_id],
    ["session", world.session_id],
    ["policy", `${world.policy_id} ${world.policy_hash}`],
  ] as const;
  for (const [name, value] of rows) printRows(terminal, `  ${name.padEnd(10)} ${harmlessLine(value)}`);
  for (const line of isolationLines(coloursFor(terminal), world.isolation)) printLine(terminal, `  ${line}`);
}

function printRestart(terminal: Terminal, { ended, world }: WorldRestartReply): void {
  if (ended.length === 0) printLine(terminal, "No world was warm");
  for (const one of ended) {
    const whose = one.agent_id === null ? "" : ` of agent ${one.agent_id}`;
    const commands = one.commands === 0 ? "" : `, and ${one.commands} running in it`;
    printRows(terminal, `${one.world_id}${whose} in ${harmlessLine(one.project)} is ended${commands}`);
    for (const { pid, argv } of one.processes)
      printRows(terminal, `  ended process ${pid}  ${harmlessLine(argv)}`);
    for (const port of one.closed_ports) printLine(terminal, `  ${closedWords(port, one.agent_id)}`);
  }
  if (world !== null) printWarm(terminal, world);
}

function closedWords(
  { port, host_port: hostPort, by }: EndedWorld["closed_ports"][number],
  agent: string | null,
): string {
  const words = [
    `substrate world publish ${port}`,
    ...(hostPort === port ? [] : [`--host-port ${hostPort}`]),
    ...(agent === null || agent === PERSON ? [] : [`--agent ${harmlessLine(agent)}`]),
  ];
  const again =
    by === "policy"
      ? "its policy opens it again with the next command"
      : `'${words.join(" ")}' opens it again`;
  return `closed port 127.0.0.1:${hostPort}, which led to port ${port} there: ${again}`;
}
