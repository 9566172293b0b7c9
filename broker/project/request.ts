/** Checks of a request beyond its schema, and finding its place. */
import { realPath } from "../model/host-paths.ts";
import { isRefusal, type Refusal, refusal } from "../model/refusal.ts";
import type { ExecuteRequest } from "../../schemas/generated/types.ts";
import type { Effective } from "../model/effective.ts";
import type { Job } from "../model/job.ts";
import type { Live } from "../model/live.ts";
import type { Site } from "../model/site.ts";
import type { Marks } from "./marks.ts";
import type { Place } from "../model/place.ts";
import { type Asker, locateProject, NO_PROJECT, type ProjectRules } from "./projects.ts";

/** The parts of the broker used for finding the place of a call. */
export type PlaceNeeds = {
  /** Default `cwd` of calls. */
  readonly startedIn: string;
  readonly projectRules: () => ProjectRules;
  readonly marks: Pick<Marks, "use">;
};

/** Linux limits an execve argument to 128 KiB with its NUL (`MAX_ARG_STRLEN`, include/uapi/linux/binfmts.h). */
const MAX_ARGUMENT = 131_071;

const SHELLS = { sh: "/bin/sh", bash: "/bin/bash" } as const;

/** Returns the argv to execute. */
export function argvOf(request: ExecuteRequest): readonly string[] | Refusal {
  const argv = request.argv ?? [SHELLS[request.shell ?? "sh"], "-c", request.cmd ?? ""];
  const long = argv.findIndex((word) => Buffer.byteLength(word) > MAX_ARGUMENT);
  if (long === -1) return argv;
  const field = request.argv === undefined ? "cmd" : `argv[${long}]`;
  return refusal(
    "invalid_request",
    `${field} has ${Buffer.byteLength(argv[long] ?? "")} bytes; the kernel accepts ${MAX_ARGUMENT} in one argument`,
    "Write the script to a file in the project and run that, or send data through stdin_b64",
  );
}

/** Returns the project and working directory of a call; default `cwd`: the broker's start folder. */
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
    "cwd: missing, and the folder where the broker was started cannot be a project",
    "Send 'cwd': the full path of the project folder",
  );
}

/**
 * How to interpret a request whose command runs in a world. Files appearing below its project afterwards may be the command's, so
 * `Marks` is told before the command runs.
 */
export const IN_WORLD: How = inWorld("agent");

/** The same for the operator's socket. */
export const BY_PERSON: How = inWorld("person");

function inWorld(asker: Asker): How {
  return { argvOf, placeOf: (broker, cwd) => placeOfWorld(broker, cwd, asker), asker };
}

/** What holds for a call that is decided on. `isGranted`: `effective` has the scopes of a token, which its hash does not cover. */
export type Deciding = {
  readonly place: Place;
  readonly site: Site;
  readonly effective: Effective;
  readonly isGranted: boolean;
};

export type How = {
  readonly argvOf: (request: ExecuteRequest) => readonly string[] | Refusal;
  readonly placeOf: (broker: PlaceNeeds, cwd: string | undefined) => Place | Refusal;
  readonly asker: Asker;
  /** The `x-request-id` of the call; absent when no execute call waits. */
  readonly call?: string;
  readonly live?: Live;
  /** The request whose command is judged, where it is another than the one that runs. Absent: the call's. */
  readonly judgedAs?: (request: ExecuteRequest) => ExecuteRequest;
  /** Whether the command has a home of its own; absent: no. */
  readonly hasOwnHome?: boolean;
  /** Whether the job is only looked at: no session is made for it. */
  readonly peeks?: boolean;
  /** Decides in place of the rules about commands; absent: those decide. */
  readonly decide?: (asked: Deciding) => Job["decision"] | Refusal;
};

/** Finds the place of a command and notes the use of its project. */
export function placeOfWorld(broker: PlaceNeeds, cwd: string | undefined, asker: Asker): Place | Refusal {
  const place = placeOf(broker, cwd, asker);
  if (!isRefusal(place)) broker.marks.use(place.project, place.identity, asker === "person");
  return place;
}

/** How to interpret a program started on the host: the kernel has already accepted its arguments. */
export const ON_HOST: How = {
  argvOf: ({ argv = [] }) => argv,
  placeOf: placeOnHost,
  asker: "agent",
};

/**
 * Returns the place of a program on the host. Its working directory may be any folder: the home, `/`, another user's, or a
 * deleted folder. Without a possible project, the place gets {@link NO_PROJECT}, which no `$PROJECT` row of a policy matches.
 */
export function placeOnHost(broker: PlaceNeeds, cwd: string | undefined): Place | Refusal {
  const place = placeOf(broker, cwd);
  if (!isRefusal(place) || cwd === undefined) return place;
  return { project: NO_PROJECT, cwd: realPath(cwd) ?? cwd, identity: "none" };
}
