/** Starts the broker for a verb that needs one, and replaces the broker of an older version of this installation. */
import type { HealthReply } from "../../../schemas/generated/types.ts";
import { isAnswered } from "../../serve/sockets.ts";
import { readBrokerFile } from "../terminal/broker-file.ts";
import { isInside } from "../terminal/inside.ts";
import { ask } from "../terminal/replies.ts";
import { harmlessLine, type Terminal } from "../terminal/terminal.ts";
import { endBroker, startProcess } from "./broker.ts";

/** Verbs that ask a broker and start one. Every other verb works without, or says that none runs. */
const NEEDS_BROKER: readonly string[] = [
  ...["exec", "shell", "run", "check", "mcp", "acp", "replay", "diff", "apply", "discard", "undo", "held"],
  ...["approvals", "world warm", "world publish", "trace list", "trace tail"],
];

/** @param verb words of the verb, such as `world warm`. Throws {@link Complaint} when the broker does not start. */
export async function startWhenNeeded(terminal: Terminal, verb: string): Promise<void> {
  if (!NEEDS_BROKER.includes(verb) || isInside(terminal)) return;
  if (await isAnswered(terminal.home.controlSocket)) return await replaceOld(terminal);
  say(terminal, "starting the broker ('substrate broker stop' ends it)");
  await startProcess(terminal, true);
}

/**
 * A package manager puts a new version in the place of the old one, whose broker then lacks files. A broker of another installation is
 * left alone: two installations would replace each other's broker in turns.
 */
async function replaceOld(terminal: Terminal): Promise<void> {
  const { installation } = terminal;
  const file = readBrokerFile(terminal);
  if (file === undefined || file.installation !== installation.root || file.version === installation.version)
    return;
  const version = `${harmlessLine(file.version)} by ${installation.version}`;
  const running = await runningIn(terminal);
  if (running !== 0) {
    const what =
      running === undefined ? "what runs" : `${running} running ${running === 1 ? "process" : "processes"}`;
    say(
      terminal,
      `the broker is still version ${harmlessLine(file.version)}: 'substrate broker start --current' replaces it by ${installation.version} and ends ${what}`,
    );
    return;
  }
  say(terminal, `replacing the idle broker of version ${version}`);
  await endBroker(terminal);
  await startProcess(terminal, true);
}

/** Commands and kept processes in all worlds; undefined where the broker does not say. */
export async function runningIn(terminal: Terminal): Promise<number | undefined> {
  try {
    const { worlds } = await ask<HealthReply>(terminal, "/v1/health");
    return worlds.reduce(
      (sum, { running = 0, processes = [] }) => sum + Math.max(running, processes.length),
      0,
    );
  } catch {
    return undefined;
  }
}

function say({ err }: Terminal, line: string): void {
  err.write(`substrate: ${line}\n`);
}
