import picocolors from "picocolors";
import type { Terminal } from "../terminal/terminal.ts";

export type Colours = ReturnType<typeof picocolors.createColors>;

/** No colours: for text that is shown elsewhere. */
export const PLAIN: Colours = picocolors.createColors(false);

/** Colours for a terminal; plain text for a pipe, non-empty `NO_COLOR`, or `TERM=dumb`. */
export function coloursFor(terminal: Terminal): Colours {
  const { NO_COLOR, TERM } = terminal.environment;
  const refused = (NO_COLOR !== undefined && NO_COLOR !== "") || TERM === "dumb";
  return picocolors.createColors(terminal.out.isTTY === true && !refused);
}

/** Paints a verdict: green runs unchanged, red is denied, yellow is everything between. */
export function paintVerdict(colours: Colours, verdict: string): string {
  if (verdict === "allow") return colours.green(verdict);
  if (verdict === "deny") return colours.red(verdict);
  return colours.yellow(verdict);
}
