import type { HealthReply } from "../../../schemas/generated/types.ts";
import { coloursFor } from "../colours.ts";
import { ask } from "../replies.ts";
import { harmless, printJson, printLine, type Terminal } from "../terminal.ts";

/** Backend, what it isolates, and each warm world with its mounts and processes. */
export async function worldStatus(terminal: Terminal, json: boolean): Promise<number> {
  const health = await ask<HealthReply>(terminal, "/v1/health");
  if (json) printJson(terminal, health);
  else describe(terminal, health);
  return 0;
}

function describe(terminal: Terminal, health: HealthReply): void {
  const colours = coloursFor(terminal);
  printLine(terminal, `Backend ${health.backend}`);
  for (const [part, word] of Object.entries<string>({ ...health.isolation })) {
    if (part === "backend") continue;
    printLine(
      terminal,
      `  ${part.padEnd(13)} ${word === "on" || word === "none" ? colours.green(word) : colours.yellow(word)}`,
    );
  }
  printLine(terminal, health.worlds.length === 0 ? "No world is warm" : `${health.worlds.length} warm`);
  for (const world of health.worlds) {
    printLine(
      terminal,
      `${colours.bold(world.world_id)}  agent ${world.agent_id}  project ${harmless(world.project)}`,
    );
    printLine(terminal, `  session ${world.session_id}`);
    for (const mount of world.mounts ?? []) printLine(terminal, `  mount   ${harmless(mount)}`);
    printLine(
      terminal,
      `  limits  ${Object.keys(world.limits ?? {}).length === 0 ? "none in this version" : JSON.stringify(world.limits)}`,
    );
    for (const process of world.processes ?? [])
      printLine(terminal, `  process ${process.pid}  ${harmless(process.argv)}`);
  }
}
