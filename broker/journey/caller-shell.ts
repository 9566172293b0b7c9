/** The shell that `substrate exec` and `check` were called from: what of its variables a command gets, and what they are worth. */
import type { ExecuteRequest } from "../../schemas/generated/types.ts";
import type { Broker } from "../broker.ts";
import type { BaseEnvironment } from "../model/environment.ts";
import type { CallerShell, Passing } from "../settings/environment.ts";
import type { Effective } from "../model/effective.ts";
import { isHarmless, isSystemFolder, namesPlace, PASSED_BY_DEFAULT, passes } from "../policy/index.ts";
import type { Place } from "../model/place.ts";
import type { Asker } from "../project/projects.ts";
import { socketVariables } from "../project/shared-sockets.ts";

/** What a command starts with: of the caller's shell where the call brings one, else of the broker's. */
export function environmentFor(
  broker: Broker,
  effective: Effective,
  { caller_env: variables }: Pick<ExecuteRequest, "caller_env">,
  place: Place,
  asker: Asker,
): BaseEnvironment {
  const passing = passingOf(broker, effective);
  if (variables === undefined) return broker.environments.of(effective.hash, passing);
  if (asker === "person") broker.programFolders.add(variables["PATH"] ?? "");
  const shell = asker === "person" ? ofPerson(variables) : ofAgent(broker, place, variables);
  return broker.environments.ofShell(effective.hash, passing, shell);
}

function passingOf({ around }: Broker, { policies }: Effective): Passing {
  return {
    passes: (name) => passedLists(policies).every((list) => passes(list, name)),
    added: () => socketVariables(policies, around.agents),
  };
}

/** The lists of all that hold and have one: with two, only what both pass gets in. */
function passedLists(policies: Effective["policies"]): readonly (readonly string[])[] {
  const lists = policies.map(({ document }) => document.world?.env).filter((list) => list !== undefined);
  return lists.length === 0 ? [PASSED_BY_DEFAULT] : lists;
}

/** Who calls on the operator's socket may approve whatever a rule does not let through. */
function ofPerson(variables: CallerShell["variables"]): CallerShell {
  return { variables, key: "person", isPersons: true, trusts: () => true };
}

/**
 * An agent says of itself what its shell has. Where rules let through only what they name, a PATH of its choice must not put
 * another program behind the name: its folders are the system's or the broker's own, and so is the place that a version manager's
 * variable names. A hidden folder of the home may be, or hold, another project, in which commands write.
 */
function ofAgent(
  { environments }: Broker,
  { project }: Place,
  variables: CallerShell["variables"],
): CallerShell {
  const known = new Set(environments.path.split(":"));
  const isSafe = (path: string): boolean => isSystemFolder(path) || known.has(path);
  return {
    variables,
    key: `agent\0${project}`,
    isPersons: false,
    trusts: (name, value) =>
      name === "PATH"
        ? value.split(":").every(isSafe)
        : isHarmless(name, value) || (namesPlace(name) && isSafe(value)),
  };
}
