/** The shell that `substrate exec` and `check` were called from: what of its variables a command gets, and what they are worth. */
import { realpathSync } from "node:fs";
import { normalize } from "node:path";
import type { ExecuteRequest } from "../schemas/generated/types.ts";
import type { Broker } from "./broker.ts";
import type { BaseEnvironment, CallerShell, Passing } from "./environment.ts";
import { fileScope } from "./file-scope.ts";
import { isWithin } from "./folders.ts";
import type { Effective } from "./policies.ts";
import { isHarmless, isSystemFolder, namesPlace, PASSED_BY_DEFAULT, passes } from "./policy/index.ts";
import type { Asker, Place } from "./projects.ts";
import { socketVariables } from "./shared-sockets.ts";

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
  const shell = asker === "person" ? ofPerson(variables) : ofAgent(broker, effective, place, variables);
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
 * another program behind the name: its folders are the system's, the broker's own, or a hidden one of the home in which no
 * command writes (`~/.nvm/…/bin`, `~/.cargo/bin`), and so is the place that a version manager's variable names.
 */
function ofAgent(
  { environments, around: { home } }: Broker,
  { policies }: Effective,
  { project }: Place,
  variables: CallerShell["variables"],
): CallerShell {
  const known = new Set(environments.path.split(":"));
  const scopes = policies.map(({ document }) => fileScope(document, project, home));
  const written = scopes.flatMap(({ write, scratch = [] }) => [...write, ...scratch]);
  const places = [project, ...written.map((path) => path.replace(/\/\*\*$/, "") || "/")];
  const isOutOfReach = (path: string): boolean =>
    isHidden(path, home) && !places.some((place) => isWithin(path, place) || isWithin(place, path));
  const isSafe = (path: string): boolean => {
    if (isSystemFolder(path) || known.has(path)) return true;
    return path.startsWith("/") && [normalize(path), realOf(path)].every(isOutOfReach);
  };
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

/** No folder that begins with a dot directly in the home is a project, nor is one below it (CONTRACT §2). */
function isHidden(path: string, home: string): boolean {
  return path.startsWith(`${home}/.`);
}

function realOf(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    // Not there, ignoring: its written path is looked at beside it.
    return normalize(path);
  }
}
