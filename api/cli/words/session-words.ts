import type { AgentSession } from "../../../schemas/generated/types.ts";
import { harmlessExcerpt, harmlessLine } from "../terminal/terminal.ts";
import { ageWords } from "./amounts.ts";

const MOST = 80;

/** Formats an agent's session: `6f2c…, began 2h ago, last prompt 5m ago, 12 commands, the last 'npm test', goes on`. */
export function sessionWords(session: AgentSession, now: number): string {
  const { session_key: key, began_at, prompted_at, ended_at, commands, last_command: last } = session;
  const command = last === null ? "" : `, the last '${harmlessExcerpt(last.cmd ?? "", MOST)}'`;
  return [
    harmlessLine(key),
    `began ${ageWords(began_at, now)}`,
    prompted_at === null ? "no prompt told" : `last prompt ${ageWords(prompted_at, now)}`,
    `${commands === 1 ? "1 command" : `${commands} commands`}${command}`,
    ended_at === null ? "no end told" : `ended ${ageWords(ended_at, now)}`,
  ].join(", ");
}
