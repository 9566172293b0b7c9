import type { ReadCommand, SimpleCommand } from "./command.ts";
import { baseName } from "./inner.ts";
import { languageOf } from "./shell-table.ts";

/**
 * The commands without which the whole line fails: those of a pipeline, and of commands joined by `&&`, in `( )`, `{ }`, `sh -c`
 * and behind what hands a command on as well. After `;`, `||`, `&` or inside a loop or a function the line may go on, or never come
 * there: whether a write in it matters, only running it tells.
 */
export function decisiveCommands(read: ReadCommand): readonly SimpleCommand[] {
  if (read.incomplete) return [];
  const isHandedDown = handedDown(read.fragments);
  return read.fragments.filter((command) => command.decides === true && isHandedDown(command));
}

/** Whether everything that hands a command on runs it here, once, and ends as it ends. */
function handedDown(commands: readonly SimpleCommand[]): (command: SimpleCommand) => boolean {
  const others = new Map<string, number>();
  const spotOf = ({ start, end }: SimpleCommand): string => `${start}:${end}`;
  for (const command of commands) {
    if (handsOn(command)) continue;
    const spot = spotOf(command);
    others.set(spot, Math.min(others.get(spot) ?? command.depth, command.depth));
  }
  return (command) => command.depth === 0 || (others.get(spotOf(command)) ?? command.depth) >= command.depth;
}

/** Wrappers that run one command, once, here, and end as it ends; shells do so with a text. */
const HANDING_ON: ReadonlySet<string> = new Set([
  ...["sudo", "doas", "env", "nohup", "nice", "ionice", "timeout", "time", "stdbuf", "setsid"],
  ...["command", "builtin", "exec", "eval"],
]);

function handsOn({ words }: SimpleCommand): boolean {
  const [program] = words;
  const name = baseName(program?.text ?? "");
  return HANDING_ON.has(name) || languageOf(name) !== undefined;
}
