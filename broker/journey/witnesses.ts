/** Observers of one running command: its violations, programs, network and telemetry. */
import type { Dialled, World, WorldViolation } from "../../world/backend.ts";
import type { Broker } from "../broker.ts";
import { type Job, secretsOfJob } from "../model/job.ts";
import type { CommandNetwork } from "../network/command-network.ts";
import { ProgramRecorder } from "../programs/program-recorder.ts";
import { WorldLacks } from "../programs/world-lacks.ts";
import { Violations } from "../spans/violations.ts";
import type { SpanRecord } from "../spans/trace.ts";
import { TelemetryRecorder } from "../telemetry/telemetry-recorder.ts";
import type { Ran, RunRequest } from "../worlds/run.ts";

/** The observers of one command. They depend on each other, so each step fixes the order of its calls. */
export class Witnesses {
  readonly violations: Violations;
  readonly programs: ProgramRecorder;
  readonly telemetry: TelemetryRecorder;
  readonly lacks: WorldLacks;
  readonly #networkOf: (run: Ran["run"]) => CommandNetwork | undefined;
  readonly #refuseDial: (dialled: Dialled) => void;
  #network: CommandNetwork | undefined;

  /** `started`: the command's start line. `record`: writes the line of a violation. */
  constructor(
    { gateway, projectRules, trace }: Pick<Broker, "gateway" | "projectRules" | "trace">,
    job: Job,
    world: World,
    started: SpanRecord,
    record: (violation: WorldViolation) => void,
  ) {
    const known = secretsOfJob(job);
    this.violations = new Violations(record);
    this.programs = new ProgramRecorder({ trace, command: started, known });
    this.telemetry = new TelemetryRecorder(world, known);
    this.lacks = new WorldLacks(projectRules().uid);
    this.#refuseDial = (dialled) => gateway.of(world)?.refuseDial(this.#network, dialled);
    this.#networkOf = (run) => gateway.of(world)?.register(run, started, this.tell);
  }

  /** Undefined before the command runs, and in a world without a network. */
  get network(): CommandNetwork | undefined {
    return this.#network;
  }

  readonly tell = (violation: WorldViolation): void => this.violations.add(violation);

  /** Callbacks for the run. */
  get listeners(): Pick<RunRequest, "onViolation" | "onRun" | "onPrograms" | "onTelemetry"> {
    return {
      onViolation: (violation) => {
        if (violation.dialled === undefined) this.tell(violation);
        else this.#refuseDial(violation.dialled);
      },
      onRun: (run) => {
        this.#network = this.#networkOf(run);
      },
      onPrograms: (events, untold) => {
        this.lacks.add(events);
        this.programs.add(events, untold);
      },
      onTelemetry: this.telemetry.onTelemetry,
    };
  }

  /** Resolves once the ending of each program and the owner of each connection are known. */
  async settle({ run }: Ran, keepsProcesses: boolean): Promise<void> {
    await this.programs.finish(run, keepsProcesses);
    await this.#network?.settled(keepsProcesses ? undefined : run.closed);
  }
}
