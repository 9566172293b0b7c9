import type { ReadCommand, SimpleCommand } from "./command.ts";
import { baseName } from "./inner.ts";

/**
 * The commands without which the whole line fails: those of a pipeline, and of commands joined by `&&`. After `;`, `||`,
 * `&` or inside a loop or a function the line may go on, or never come there: whether a write in it matters, only running
 * it tells.
 */
export function decisiveCommands(read: ReadCommand): readonly SimpleCommand[] {
  if (read.incomplete) return [];
  const parts = outermost(read.fragments);
  if (!parts.every((part, index) => isJoined(read.text, parts[index - 1], part))) return [];
  const last = parts.at(-1);
  // What follows a command with a here-document is its text, or a command, and that would be another part.
  const tail = parts.some(hasDocument) || last === undefined ? "" : read.text.slice(last.end);
  if (!/^[\s;]*$/.test(tail)) return [];
  const whole = new Map(parts.map((part) => [part.start, part]));
  return read.fragments.filter((command) => {
    const part = whole.get(command.start);
    return part?.end === command.end && (command.depth === 0 || isHandedOn(part));
  });
}

/** In order, without what stands inside another one: a loop's own redirect stands around the loop. */
function outermost(commands: readonly SimpleCommand[]): readonly SimpleCommand[] {
  const sorted = commands
    .filter(({ depth }) => depth === 0)
    .sort((one, other) => one.start - other.start || other.end - one.end);
  const parts: SimpleCommand[] = [];
  for (const command of sorted) {
    if (command.start >= (parts.at(-1)?.end ?? 0)) parts.push(command);
  }
  return parts;
}

function isJoined(text: string, before: SimpleCommand | undefined, command: SimpleCommand): boolean {
  const between = text.slice(before?.end ?? 0, command.start);
  return before === undefined ? between.trim() === "" : /^\s*(&&|\|&?)\s*$/.test(between);
}

function hasDocument({ redirects }: SimpleCommand): boolean {
  return redirects.some(({ target }) => target === null);
}

/** Wrappers that run one command, once, here, and end as it ends. */
const HANDING_ON: ReadonlySet<string> = new Set([
  ...["sudo", "doas", "env", "nohup", "nice", "ionice", "timeout", "time", "stdbuf", "setsid"],
  ...["command", "builtin", "exec"],
]);

function isHandedOn({ words }: SimpleCommand): boolean {
  const [program] = words;
  return program !== undefined && HANDING_ON.has(baseName(program.text));
}
