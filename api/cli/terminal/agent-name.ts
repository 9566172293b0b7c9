/** Detects a misspelt agent of config.yaml after `--agent`. */
import { closestName } from "../../../schemas/closest-name.ts";
import { readBrokerFile } from "./broker-file.ts";
import { Complaint, harmlessLine, type Terminal } from "./terminal.ts";

/**
 * Refuses a misspelt agent of config.yaml. Callers may choose any label, but a near miss would silently get another policy and other
 * budgets than the agent. The error names the way to use the label anyway.
 */
export function refuseMisspeltAgent(terminal: Terminal, name: string): void {
  const listed = Object.keys(readBrokerFile(terminal)?.sockets.agents ?? {});
  const near = misspelt(name, listed);
  if (near === undefined) return;
  throw new Complaint(
    `config.yaml lists no agent '${harmlessLine(name)}' (did you mean '${near}'?). To use '${harmlessLine(name)}' as a label of your own, set SUBSTRATE_AGENT_ID=${harmlessLine(name)} instead of --agent`,
  );
}

/** Finds the listed agent behind a misspelt name; undefined for a listed name and for a distinct label. */
export function misspelt(name: string, listed: readonly string[]): string | undefined {
  if (listed.includes(name)) return undefined;
  const near = closestName(name, listed);
  return near === undefined || isSibling(name, near) ? undefined : near;
}

/** Whether a name is a deliberate variant: `claude-2` and `claude.review` of `claude`, `bot2` of `bot1`. */
function isSibling(name: string, near: string): boolean {
  const goesOn = name.startsWith(near) && /^[0-9._:@-]/.test(name.slice(near.length));
  return goesOn || name.replace(/[0-9]+/g, "") === near.replace(/[0-9]+/g, "");
}
