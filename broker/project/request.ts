/** What a call asks for once its place is known: every rule of the request that a schema cannot say. */
import { isRefusal, type Refusal, refusal } from "../model/refusal.ts";
import { realpathSync } from "node:fs";
import type { ExecuteRequest } from "../../schemas/generated/types.ts";
import type { Marks } from "./marks.ts";
import type { Place } from "../model/place.ts";
import { type Asker, locateProject, NO_PROJECT, type ProjectRules } from "./projects.ts";

/** What finding the place of a call needs of the broker. */
export type PlaceNeeds = {
  /** Where calls without a `cwd` work. */
  readonly startedIn: string;
  readonly projectRules: () => ProjectRules;
  readonly marks: Pick<Marks, "use">;
};

/** Linux ends one argument of execve at 128 KiB with its NUL (`MAX_ARG_STRLEN`, include/uapi/linux/binfmts.h). */
const MAX_ARGUMENT = 131_071;

const SHELLS = { sh: "/bin/sh", bash: "/bin/bash" } as const;

/** The words to execute. */
export function argvOf(request: ExecuteRequest): readonly string[] | Refusal {
  const argv = request.argv ?? [SHELLS[request.shell ?? "sh"], "-c", request.cmd ?? ""];
  const long = argv.findIndex((word) => Buffer.byteLength(word) > MAX_ARGUMENT);
  if (long === -1) return argv;
  const field = request.argv === undefined ? "cmd" : `argv[${long}]`;
  return refusal(
    "invalid_request",
    `${field} has ${Buffer.byteLength(argv[long] ?? "")} bytes and the kernel takes ${MAX_ARGUMENT} in one argument`,
    "Write the script to a file in the project and run that, or send data through stdin_b64",
  );
}

/** Project and working directory of a call; without `cwd`, the broker's own. */
export function placeOf(
  broker: PlaceNeeds,
  cwd: string | undefined,
  asker: Asker = "agent",
): Place | Refusal {
  if (cwd !== undefined) return locateProject(cwd, broker.projectRules(), asker);
  const own = locateProject(broker.startedIn, broker.projectRules(), asker);
  if (!isRefusal(own)) return own;
  return refusal(
    "cwd_required",
    "This call names no cwd, and the folder where the broker was started cannot be a project",
    "Send 'cwd': the full path of the project folder",
  );
}

/**
 * How a request is understood whose command runs in a world. What turns up below its project from then on may be that
 * command's: `Marks` is told before it runs.
 */
export const IN_WORLD: How = inWorld("agent");

/** The same from the operator's socket. */
export const BY_PERSON: How = inWorld("person");

function inWorld(asker: Asker): How {
  return { argvOf, placeOf: (broker, cwd) => placeOfWorld(broker, cwd, asker), asker };
}

export type How = {
  readonly argvOf: (request: ExecuteRequest) => readonly string[] | Refusal;
  readonly placeOf: (broker: PlaceNeeds, cwd: string | undefined) => Place | Refusal;
  readonly asker: Asker;
  /** The `x-request-id` of the call; absent where no execute call waits for the command. */
  readonly call?: string;
};

/** Where a command will work, and that it will. */
export function placeOfWorld(broker: PlaceNeeds, cwd: string | undefined, asker: Asker): Place | Refusal {
  const place = placeOf(broker, cwd, asker);
  if (!isRefusal(place)) broker.marks.use(place.project, place.identity, asker === "person");
  return place;
}

/** The same for a program that starts on the host: the kernel has taken its words already. */
export const ON_HOST: How = {
  argvOf: ({ argv = [] }) => argv,
  placeOf: placeOnHost,
  asker: "agent",
};

/**
 * Project and working directory of a program that starts on the host, which works wherever it is started: the home folder, `/`, another user's folder,
 * one that is deleted already. Where no project can be there is none, so that nothing of a policy's `$PROJECT` is met.
 */
export function placeOnHost(broker: PlaceNeeds, cwd: string | undefined): Place | Refusal {
  const place = placeOf(broker, cwd);
  if (!isRefusal(place) || cwd === undefined) return place;
  return { project: NO_PROJECT, cwd: realOr(cwd), identity: "none" };
}

function realOr(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    // Deleted, or not ours to look into: it is what its program says it is.
    return path;
  }
}
