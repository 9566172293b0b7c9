import type { Job } from "../model/job.ts";
import { CommandGate, type GateNeeds } from "./command-gate.ts";
import { nobodyIsAsked } from "./start-refusals.ts";

/** Of a command that is tried out before it is approved, as if it were: on an overlay, and nobody is asked or told. */
export function previewGate(broker: GateNeeds, job: Job): CommandGate {
  return new CommandGate(broker, job, () => ({
    isIsolated: true,
    isApproved: true,
    ask: (_start, finding) => Promise.resolve(nobodyIsAsked(finding, "a preview asks nobody")),
    records: { noted: () => {}, refused: () => {}, finish: () => {} },
    close: () => {},
  }));
}
