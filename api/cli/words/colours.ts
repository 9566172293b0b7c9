import picocolors from "picocolors";
import type { Terminal } from "../terminal/terminal.ts";

export type Colours = ReturnType<typeof picocolors.createColors>;

/** Colours for a person at a terminal, none for a pipe, `NO_COLOR` (any value but the empty one) or `TERM=dumb`. */
export function coloursFor(terminal: Terminal): Colours {
  const { NO_COLOR, TERM } = terminal.environment;
  const refused = (NO_COLOR !== undefined && NO_COLOR !== "") || TERM === "dumb";
  return picocolors.createColors(terminal.out.isTTY === true && !refused);
}

/** A verdict in the colour of what it means for the command. */
export function paintVerdict(colours: Colours, verdict: string): string {
  if (verdict === "allow") return colours.green(verdict);
  if (verdict === "deny") return colours.red(verdict);
  return colours.yellow(verdict);
}
