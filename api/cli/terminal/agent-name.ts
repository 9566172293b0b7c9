/** Whether the name after `--agent` was probably meant for an agent that config.yaml lists. */
import { closestName } from "../../../schemas/closest-name.ts";
import { readBrokerFile } from "./broker-file.ts";
import { Complaint, harmlessLine, type Terminal } from "./terminal.ts";

/**
 * Any name is a label that its caller may choose. But one that is nearly an agent's of config.yaml would get another policy and
 * other budgets than that agent, and nobody would notice: it is refused, with the way to have it all the same.
 */
export function refuseMisspeltAgent(terminal: Terminal, name: string): void {
  const listed = Object.keys(readBrokerFile(terminal)?.sockets.agents ?? {});
  const near = misspelt(name, listed);
  if (near === undefined) return;
  throw new Complaint(
    `config.yaml lists no agent '${harmlessLine(name)}' (did you mean '${near}'?). For a label of your own that is so near, set SUBSTRATE_AGENT_ID=${harmlessLine(name)} instead of --agent`,
  );
}

/** The listed name that was meant; undefined where `name` is listed, or is a label of its own. */
export function misspelt(name: string, listed: readonly string[]): string | undefined {
  if (listed.includes(name)) return undefined;
  const near = closestName(name, listed);
  return near === undefined || isSibling(name, near) ? undefined : near;
}

/** `claude-2`, `claude.review` and `bot2` beside `claude` and `bot1` are more of the same, not mistakes. */
function isSibling(name: string, near: string): boolean {
  const goesOn = name.startsWith(near) && /^[0-9._:@-]/.test(name.slice(near.length));
  return goesOn || name.replace(/[0-9]+/g, "") === near.replace(/[0-9]+/g, "");
}
