import type { ProgramGate } from "../../world/backend.ts";
import type { Job } from "../model/job.ts";
import {
  followPolicies,
  type GroundNeeds,
  readCommand,
  type StartNeeds,
  startPlaces,
} from "../policies/judge.ts";
import type { OnFault } from "../spans/span-index.ts";
import { concernedStarts } from "../policy/index.ts";
import { ExecGate, type GateParts } from "./gate.ts";
import { OwnCommands } from "./own-commands.ts";

/** What a gate needs of the broker. */
export type GateNeeds = GroundNeeds & StartNeeds & { readonly onFault: OnFault };

type OwnGateParts = Pick<GateParts, "isIsolated" | "ask" | "records" | "close"> & {
  readonly isApproved: boolean;
};

/**
 * What every gate of a job has. Most commands start nothing that is asked about: what decides is made when the first such start
 * comes, since it costs more than all else that a command's gate is.
 */
export class CommandGate {
  /** What the world asks. */
  readonly programs: ProgramGate;
  readonly #broker: GateNeeds;
  readonly #make: () => ExecGate;
  #made: ExecGate | undefined;
  #finished = false;

  constructor(broker: GateNeeds, job: Job, parts: () => OwnGateParts) {
    const { request, effective, environment } = job;
    // A request that says another PATH does not hide where programs are: its command may copy one from there.
    const paths = [request.env?.["PATH"], environment.variables["PATH"], broker.environments.path];
    const refuses = effective.policies.some(({ mode }) => mode === "enforce");
    this.#broker = broker;
    this.#make = () => execGate(broker, job, refuses, parts());
    this.programs = {
      ...concernedStarts(effective.policies),
      folders: foldersOf(paths.join(":")),
      refuses,
      decide: (start, wait) => this.#decide(start, wait),
    };
  }

  /** The command is over: what had no line of its own is counted. */
  finish(): void {
    this.#finished = true;
    this.#made?.finish();
  }

  /** Of what came after the end nobody is left to ask: only a gate that was there before goes on, for what is kept. */
  #decide(...asked: Parameters<ProgramGate["decide"]>): ReturnType<ProgramGate["decide"]> {
    try {
      return (this.#made ??= this.#make()).decide(...asked);
    } catch (error) {
      this.#broker.onFault("Whether a program may start could not be decided", error);
      return false;
    } finally {
      if (this.#finished) this.#made?.finish();
    }
  }
}

function execGate(
  broker: GateNeeds,
  job: Job,
  refuses: boolean,
  { isApproved, ...parts }: OwnGateParts,
): ExecGate {
  const { agent, place, request, effective, decision } = job;
  const wheres = startPlaces(broker, job);
  const [where] = wheres;
  return new ExecGate({
    ...parts,
    refuses,
    now: job.replays?.follow ?? followPolicies(broker, agent, place, request.profile, effective),
    wheres,
    own: new OwnCommands({
      approvedUnder: isApproved ? effective.hash : null,
      commands: () => readCommand(request).fragments,
      where,
      wouldAsk: decision.verdict === "would_ask",
      told: [...decision.warnings, ...(decision.rule === null ? [] : [decision.rule])],
    }),
    onFault: broker.onFault,
  });
}

/** Where the programs lie that copies are known by; a relative folder is another one after each `cd`. */
function foldersOf(path: string): readonly string[] {
  const folders = path.split(":").filter((folder) => folder.startsWith("/") && !folder.includes("\0"));
  return [...new Set(folders)];
}
