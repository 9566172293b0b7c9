import type { HealthReply, Isolation, PublishedPort } from "../../../schemas/generated/types.ts";
import { type Colours, coloursFor } from "../words/colours.ts";
import { ask } from "../terminal/replies.ts";
import { printRows } from "../terminal/rows.ts";
import { harmlessLine, printJson, printLine, type Terminal } from "../terminal/terminal.ts";

type WorldStatus = HealthReply["worlds"][number];

export type StatusOptions = { readonly json?: boolean; readonly mounts?: boolean };

/** What this host isolates, and each warm world: whose it is, what is less than on, and what runs in it. */
export async function worldStatus(terminal: Terminal, options: StatusOptions): Promise<number> {
  const health = await ask<HealthReply>(terminal, "/v1/health");
  if (options.json === true) printJson(terminal, health);
  else describe(terminal, health, options.mounts === true);
  return 0;
}

function describe(terminal: Terminal, health: HealthReply, mounts: boolean): void {
  const colours = coloursFor(terminal);
  const { backend, version, isolation, worlds } = health;
  printLine(terminal, `Backend ${backend}, version ${version}`);
  for (const line of isolationLines(colours, isolation)) printLine(terminal, `  ${line}`);
  printLine(terminal);
  printLine(terminal, worlds.length === 0 ? "No world is warm" : warmWords(worlds.length));
  for (const world of worlds) {
    printLine(terminal);
    printWorld(terminal, colours, world, mounts);
  }
}

function warmWords(count: number): string {
  return count === 1 ? "1 world is warm" : `${count} worlds are warm`;
}

function printWorld(terminal: Terminal, colours: Colours, world: WorldStatus, mounts: boolean): void {
  const { started_at: since, running = 0, pid, limits = {}, mounts: made = [], processes = [] } = world;
  const { published = [] } = world;
  const set = Object.entries(limits).map(([name, value]) => `${name} ${value}`);
  printLine(terminal, colours.bold(world.world_id));
  const rows: readonly (readonly [string, string])[] = [
    ["project", world.project],
    ["agent", world.agent_id],
    ["session", world.session_id],
    ["since", `${since ?? "unknown"}${pid === undefined ? "" : `, held by process ${pid}`}`],
    ["running", running === 1 ? "1 command" : `${running} commands`],
    ["limits", set.length === 0 ? "none in force" : set.join(", ")],
    ["mounts", `${made.length}${mounts ? "" : " (--mounts lists them)"}`],
  ];
  for (const [name, value] of rows) printRows(terminal, `  ${name.padEnd(10)} ${harmlessLine(value)}`);
  for (const port of published)
    printRows(terminal, `  ${"published".padEnd(10)} ${publishedLine(colours, port)}`);
  if (mounts) for (const mount of made) printRows(terminal, `    ${harmlessLine(mount)}`);
  if (world.isolation !== undefined)
    for (const line of isolationLines(colours, world.isolation)) printLine(terminal, `  ${line}`);
  printLine(terminal, `  ${"processes".padEnd(10)} ${processes.length === 0 ? "none" : processes.length}`);
  for (const { pid: inside, argv } of processes)
    printRows(terminal, `    ${String(inside).padStart(6)}  ${harmlessLine(argv)}`);
}

function publishedLine(colours: Colours, published: PublishedPort): string {
  const { port, host_port: hostPort, by, connections, problem } = published;
  const where = `127.0.0.1:${hostPort} to port ${port}, by ${by === "policy" ? "its policy" : "an operator"}`;
  if (problem !== null) return `${where}: ${colours.yellow(`not open: ${harmlessLine(problem)}`)}`;
  return `${where}, ${connections === 1 ? "1 connection" : `${connections} connections`}`;
}

/** Only what is not simply on has a line of its own. */
export function isolationLines(colours: Colours, isolation: Isolation): readonly string[] {
  const parts = Object.entries<string>({ ...isolation }).filter(([part]) => part !== "backend");
  const less = parts.filter(([part, word]) => word !== "on" && !(part === "capabilities" && word === "none"));
  const whole = `${parts.length - less.length} of ${parts.length} parts are on`;
  return [
    `${"isolation".padEnd(10)} ${less.length === 0 ? colours.green(whole) : `${whole}, and`}`,
    ...less.map(([part, word]) => `  ${part.padEnd(13)} ${colours.yellow(harmlessLine(word))}`),
  ];
}
