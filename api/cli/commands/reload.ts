import type { PolicyReloadReply } from "../../../schemas/generated/types.ts";
import { tell } from "../terminal/replies.ts";
import { harmless, printJson, printLine, type Terminal } from "../terminal/terminal.ts";

/** Has the broker read policies and settings again. Exit 1 when one of them does not load. */
export async function reloadPolicies(terminal: Terminal, json: boolean): Promise<number> {
  const reply = await tell<PolicyReloadReply>(terminal, "/v1/policy/reload", {});
  if (json) printJson(terminal, reply);
  else print(terminal, reply);
  const files = [...reply.policies, reply.settings];
  return files.every(({ problems }) => problems.length === 0) ? 0 : 1;
}

function print(terminal: Terminal, { policies, settings }: PolicyReloadReply): void {
  for (const { name, policy_hash: hash, problems } of policies) {
    const holds = hash === null ? "it allows nothing" : `${hash} stays`;
    printLine(
      terminal,
      `${name}: ${problems.length === 0 ? `${hash} is in force` : `does not load; ${holds}`}`,
    );
    for (const problem of problems) printLine(terminal, `  ${harmless(problem)}`);
  }
  if (settings.problems.length > 0)
    printLine(terminal, "config.yaml: does not load; the last good settings stay in force");
  for (const problem of settings.problems) printLine(terminal, `  ${harmless(problem)}`);
}
