/** Gates of a command that does not run, with all that they write and ask. */
import { ExecGate, type GateParts } from "../../../broker/exec-gate/gate.ts";
import { OwnCommands, type OwnParts } from "../../../broker/exec-gate/own-commands.ts";
import { StartRecords } from "../../../broker/exec-gate/start-records.ts";
import type { Effective } from "../../../broker/model/effective.ts";
import { refusal } from "../../../broker/model/refusal.ts";
import { type CompiledPolicy, readShell } from "../../../broker/policy/index.ts";
import { eventSpan } from "../../../broker/spans/event-span.ts";
import type { SpanRecord } from "../../../broker/spans/trace.ts";
import type { ProgramFile, ProgramStart } from "../../../world/backend.ts";
import { started, WHERE } from "./starts.ts";

type Ground = {
  readonly command?: string;
  readonly approved?: boolean;
  readonly isIsolated?: boolean;
  readonly told?: OwnParts["told"];
  readonly ask?: GateParts["ask"];
};

/** A gate with its policies to be changed, and what it wrote and asked. */
export class Gate {
  readonly spans: SpanRecord[] = [];
  readonly asked: string[] = [];
  readonly waits: number[] = [];
  readonly faults: string[] = [];
  readonly gate: ExecGate;
  now: Effective | undefined;

  constructor(policy: CompiledPolicy, { command = "true", approved, isIsolated, told, ask }: Ground = {}) {
    const effective = effectiveOf(policy);
    this.now = effective;
    const line = { ...eventSpan({ event_type: "command_start" }), span_id: "spn_command" };
    const write = (span: SpanRecord): void => void this.spans.push(span);
    this.gate = new ExecGate({
      refuses: policy.mode === "enforce",
      now: () => this.now,
      wheres: [WHERE],
      isIsolated: isIsolated ?? false,
      own: new OwnCommands({
        approvedUnder: approved === true ? effective.hash : null,
        commands: () => readShell(command).fragments,
        where: WHERE,
        told: told ?? [],
      }),
      ask: (start, finding, holds, wait) => {
        this.asked.push(finding.rule.fragment);
        return ask === undefined
          ? Promise.resolve(refusal("approval_required", "Ask", "Wait", { approval_id: "apr_x" }))
          : ask(start, finding, holds, wait);
      },
      records: new StartRecords({ started: line, secrets: new Map([["KEY", "hush-hush"]]), write }),
      onFault: (what) => void this.faults.push(what),
      close: () => {},
    });
  }

  async starts(what: ProgramFile | ProgramStart): Promise<boolean> {
    const start = "files" in what ? what : started(what);
    return await this.gate.decide(start, (ms) => void this.waits.push(ms));
  }
}

export function effectiveOf(policy: CompiledPolicy): Effective {
  return { policies: [policy], id: policy.id, hash: policy.hash, commit: null };
}
