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

/** The gate's dependencies on the broker. */
export type GateNeeds = GroundNeeds & StartNeeds & { readonly onFault: OnFault };

type OwnGateParts = Pick<GateParts, "isIsolated" | "ask" | "records" | "close"> & {
  readonly isApproved: boolean;
};

/**
 * The gate of a job. Most commands start no program that needs a decision, so the decider, its most expensive part, is
 * made at the first such start.
 */
export class CommandGate {
  /** The world's interface to the gate. */
  readonly programs: ProgramGate;
  readonly #broker: GateNeeds;
  readonly #make: () => ExecGate;
  #made: ExecGate | undefined;
  #finished = false;

  constructor(broker: GateNeeds, job: Job, parts: () => OwnGateParts) {
    const { request, effective, environment } = job;
    // All PATHs count: a request with another PATH could still copy a program from a folder of the usual PATH.
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

  /** Settles when each start up to now is judged: of a policy that only observes, programs do not wait for it. */
  async judged(): Promise<void> {
    await this.#made?.judged();
  }

  /** Ends the gate: starts without a line are counted. */
  finish(): void {
    this.#finished = true;
    this.#made?.finish();
  }

  /** After the end, only an existing gate goes on, for kept processes; a new one would have nobody to ask. */
  #decide(...asked: Parameters<ProgramGate["decide"]>): ReturnType<ProgramGate["decide"]> {
    try {
      const answer = (this.#made ??= this.#make()).decide(...asked);
      return typeof answer === "boolean" ? answer : answer.finally(() => this.#finishAgain());
    } catch (error) {
      this.#broker.onFault("Cannot decide whether a program may start", error);
      return false;
    } finally {
      this.#finishAgain();
    }
  }

  #finishAgain(): void {
    if (this.#finished) this.#made?.finish();
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

/** Folders of programs that copies are compared with; a relative folder would change with each `cd`. */
function foldersOf(path: string): readonly string[] {
  const folders = path.split(":").filter((folder) => folder.startsWith("/") && !folder.includes("\0"));
  return [...new Set(folders)];
}
