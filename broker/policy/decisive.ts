import type { ReadCommand, SimpleCommand } from "./command.ts";
import { baseName } from "./inner.ts";
import { SHELLS } from "./shell-table.ts";

/** A command that the line certainly comes to, or comes to unless something before it in a list of `&&` fails. */
export interface ReachedCommand {
  readonly command: SimpleCommand;
  /** Whether it runs where the `cd` commands before it lead: they may have failed, unless the line ends with them. */
  readonly inItsFolder: boolean;
}

/**
 * The commands whose writes are judged before the line runs, in every spelling: behind `;` and `&`, in `( )`, `{ }` and `sh -c`
 * too. What stands behind `||`, in `if`, a loop or a function may never run: only running it tells.
 */
export function reachedCommands(read: ReadCommand): readonly ReachedCommand[] {
  if (read.incomplete) return [];
  const decisive = new Set(decisiveCommands(read));
  const passing = passedOn(read.fragments);
  return read.fragments.flatMap((command) => {
    const { reach = "always", depth } = command;
    if (depth > 0 && !passing(command)) return [];
    if (decisive.has(command)) return [{ command, inItsFolder: true }];
    if (reach === "failure" || reach === "maybe") return [];
    return [{ command, inItsFolder: command.moves?.length === 0 }];
  });
}

/** Whether everything that a command is handed on by runs it here, once, with its own words. */
function passedOn(commands: readonly SimpleCommand[]): (command: SimpleCommand) => boolean {
  const others = new Map<string, number>();
  const spotOf = ({ start, end }: SimpleCommand): string => `${start}:${end}`;
  for (const command of commands) {
    if (isHandedOn(command) || isShell(command)) continue;
    const spot = spotOf(command);
    others.set(spot, Math.min(others.get(spot) ?? command.depth, command.depth));
  }
  return (command) => (others.get(spotOf(command)) ?? command.depth) >= command.depth;
}

function isShell({ words }: SimpleCommand): boolean {
  const [program] = words;
  const name = baseName(program?.text ?? "");
  return name === "eval" || SHELLS.has(name);
}

/** The commands without which the whole line fails: those of a pipeline, and of commands joined by `&&`. */
function decisiveCommands(read: ReadCommand): readonly SimpleCommand[] {
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
