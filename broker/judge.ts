/** Reads the command and decides, with every policy that holds. Nothing is run, charged or recorded here. */
import type { CheckRequest, ExecuteRequest } from "../schemas/generated/types.ts";
import { assignedPolicy } from "./assignment.ts";
import type { Broker } from "./broker.ts";
import { type Decision, decide, decideBoth, readArgv, readShell } from "./policy/index.ts";
import { type Effective, profileOfFolder } from "./policies.ts";
import type { Place } from "./projects.ts";
import type { Refusal } from "./refusal.ts";

export function effectivePolicy(
  broker: Broker,
  agent: string,
  place: Place,
  profile: string | undefined,
): Effective | Refusal {
  const assigned = assignedPolicy(broker.config(), agent, place.project, broker.around.home);
  return broker.policies.effective(assigned, profile ?? profileOfFolder(place.cwd));
}

export function judge(
  broker: Broker,
  request: ExecuteRequest | CheckRequest,
  place: Place,
  effective: Effective,
): Decision {
  const { argv, cmd = "" } = request;
  const shell = "shell" in request ? (request.shell ?? "sh") : "sh";
  const question = {
    policy: effective.hash,
    // Words of an argv cannot be taken for the text of a command that spells the same JSON.
    shell: argv === undefined ? shell : "none",
    command: argv === undefined ? cmd : JSON.stringify(argv),
    ...place,
  };
  return broker.decisions.of(question, () => {
    const read = argv === undefined ? readShell(cmd, shell) : readArgv(argv);
    const where = { ...place, home: broker.around.home };
    const [base, narrowing] = effective.policies;
    return narrowing === undefined ? decide(base, read, where) : decideBoth(base, narrowing, read, where);
  });
}
