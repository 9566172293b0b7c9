/** Tells whether this process runs inside a world. */
import { existsSync, readFileSync } from "node:fs";
import { Complaint, type Terminal } from "./terminal.ts";

/** Throws {@link Complaint} inside a world: what an agent may do is for a person on the host to say. */
export function refuseInside(terminal: Terminal, verb: string, hint = ""): void {
  if (!isInside(terminal)) return;
  throw new Complaint(
    `Cannot run 'substrate ${verb}' inside a world.\n  Ask the operator to run it on the host${hint}`,
  );
}

/** The first process of a world has a name of its own, whatever a command makes of its variables. */
export function isInside({ environment }: Terminal): boolean {
  if (environment["SUBSTRATE_SPAN_ID"] !== undefined) return true;
  const first = "/proc/1/comm";
  // Worlds are Linux's.
  return (
    process.platform === "linux" && existsSync(first) && readFileSync(first, "utf8") === "substrate-init\n"
  );
}
