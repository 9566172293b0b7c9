/** A call with a `session_key`: begins where the session's last command ended, and leaves its own end state. */
import { randomBytes } from "node:crypto";
import { normalize, relative, resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { ExecuteRequest } from "../../schemas/generated/types.ts";
import type { StateFile } from "../../world/backend.ts";
import type { Broker } from "../broker.ts";
import { parseReport, type Reported, reporting } from "../live/state-script.ts";
import type { Variables } from "../model/environment.ts";
import type { Effective } from "../model/effective.ts";
import { isWithin } from "../model/folders.ts";
import { lookAt, realPath } from "../model/host-paths.ts";
import { isIsolated, type Job } from "../model/job.ts";
import type { Place, Session } from "../model/place.ts";
import { isRefusal, quoted, type Refusal, refusal } from "../model/refusal.ts";
import { type Ground, groundOf, readCommand } from "../policies/judge.ts";
import { MAX_VARIABLE_BYTES, MAX_VARIABLES } from "../project/shell-states.ts";
import { tellable } from "../replay/drift.ts";
import { withoutWorldVariables } from "../settings/environment.ts";
import type { Ran } from "../worlds/run.ts";

/** How a call begins, and the policies in force there. */
export type Begin = Ground & {
  readonly request: ExecuteRequest;
  readonly place: Place;
  /** Hash of the policies in force in the folder that the call names, where the session has moved to another. */
  readonly calledUnder?: string;
  /** What the caller is told of it. */
  readonly told: readonly string[];
};

/**
 * Begins a call in the folder where its session's last command ended. A file operation begins there without the variables: it is no
 * program of the session.
 */
export function begin(
  broker: Broker,
  agent: string,
  request: ExecuteRequest,
  called: Place,
  session: Session | undefined,
  isFileCall: boolean,
): Begin | Refusal {
  const ground = groundOf(broker, agent, called, request.profile);
  if (isRefusal(ground)) return ground;
  const state = session?.key === undefined ? undefined : broker.shellStates.of(session.id);
  if (state === undefined) return { ...ground, request, place: called, told: [] };
  const env = { ...(isFileCall ? {} : state.variables), ...request.env };
  const again = { ...request, ...(Object.keys(env).length === 0 ? {} : { env }) };
  const told = state.lost === true && !isFileCall ? [VARIABLES_LOST] : [];
  const { caller, folder } = state;
  if (caller !== called.cwd || folder === called.cwd)
    return { ...ground, request: again, place: called, told };
  const place = { ...called, cwd: folder };
  // A profile file of the folder narrows as one of the caller's own does.
  const there = isUsable(broker, called, folder, ground.effective)
    ? groundOf(broker, agent, place, request.profile, called.cwd)
    : undefined;
  if (there !== undefined && !isRefusal(there))
    return { ...there, request: again, place, told, calledUnder: ground.effective.hash };
  const why = there === undefined ? "is gone or closed" : `cannot be used: ${there.message}`;
  const words = `The folder ${quoted(folder)}, in which the last command ended, ${why}. This command began in ${quoted(called.cwd)}`;
  return { ...ground, request: again, place: called, told: [words, ...told] };
}

const VARIABLES_LOST =
  "The variables that earlier commands exported are gone, because the broker was started again or other sessions of this agent were many: set them again";

/** A link in the path is none of those that the command followed: `pwd -P` told the path. */
function isUsable({ around }: Broker, { project }: Place, folder: string, effective: Effective): boolean {
  return (
    isWithin(folder, project) &&
    tellable(effective, project, around.home)(relative(project, folder)) &&
    lookAt(folder)?.isDirectory() === true &&
    realPath(folder) === folder
  );
}

/** Refuses a call that names a session in two ways. */
export function twoSessions({ session_id: id, session_key: key }: ExecuteRequest): Refusal | undefined {
  if (id === undefined || key === undefined) return undefined;
  return refusal(
    "invalid_request",
    `session_key: must not be sent together with 'session_id', received ${quoted(key)} and ${quoted(id)}`,
    "Send one of the two, or neither",
  );
}

/** The first words and the variables of a job's process, and the file by which its shell reports. */
export type Launch = {
  readonly argv: readonly string[];
  readonly env: ExecuteRequest["env"];
  readonly stateFile?: StateFile;
};

/** @param onReport called before the command has ended. */
export function launchOf(job: Job, onReport: (reported: Reported) => void): Launch {
  const { argv, request, environment, replays } = job;
  const { env } = request;
  const plain = { argv, env };
  const startsWith = env?.["BASH_ENV"] ?? environment.variables["BASH_ENV"];
  if (!leavesState(request) || replays !== undefined || startsWith !== undefined) return plain;
  const path = `/run/.substrate-${randomBytes(12).toString("hex")}`;
  const shell = reporting(request, argv, path);
  if (shell === undefined) return plain;
  const onState = (content: Uint8Array): void => {
    const reported = parseReport(content);
    if (reported !== undefined) onReport(reported);
  };
  return {
    argv: shell.argv,
    env: { ...env, ...shell.variables },
    stateFile: { path, script: shell.script, onState },
  };
}

function leavesState({ session_key: key, session_state: state }: ExecuteRequest): boolean {
  return key !== undefined && state !== "none";
}

/** Notes that a command of the session begins. */
export function beginState(
  { shellStates }: Broker,
  { request, session, called, place, isFileCall }: Job,
): void {
  if (!leavesState(request) || isFileCall === true) return;
  const before = shellStates.of(session.id);
  const state = { caller: called.cwd, folder: place.cwd, variables: before?.variables ?? {} };
  shellStates.keep(session, state);
}

/**
 * Keeps what the shell reported. Returns sentences about what is not kept. Any program of the command may have written the report, and
 * variables choose programs of the next command (GIT_EXTERNAL_DIFF), which may run plainly: an isolated command leaves none. Nor does
 * it leave a folder that its own text does not go to, where another `Makefile` lies.
 */
export function keepState(
  broker: Broker,
  job: Job,
  { ending, timedOut, cancelled }: Ran,
  reported: Reported | undefined,
): readonly string[] {
  const { called, session } = job;
  const isClosed = ending.kind === "not_started" && ending.step === "chdir";
  if (isClosed && session.key !== undefined) beginState(broker, { ...job, place: called });
  if (reported === undefined || ending.kind !== "exited" || timedOut || cancelled) return [];
  const { folder } = reported;
  const { shellStates } = broker;
  const before = shellStates.of(session.id);
  const stays =
    normalize(folder) === folder && isWithin(folder, called.project) && !folder.includes("\uFFFD");
  const isNamed = !stays || !isIsolated(job) || foldersNamed(job).has(folder);
  const variables = reported.variables === undefined ? undefined : exported(job, reported.variables);
  const old = before?.variables ?? {};
  const kept = variables !== undefined && fits(variables) ? variables : undefined;
  const isForeign = isIsolated(job) && !isDeepStrictEqual(kept, old);
  shellStates.keep(session, {
    caller: called.cwd,
    folder: !stays ? called.cwd : isNamed ? folder : job.place.cwd,
    variables: isForeign || kept === undefined ? old : kept,
  });
  return [
    ...(stays ? [] : [`${endedWhere(folder, called.project)}: the next one begins in '${called.cwd}'`]),
    ...(isNamed ? [] : [`The next command begins in '${job.place.cwd}': ${FOLDER_OF_ISOLATED}`]),
    ...(kept === undefined ? [TOO_MANY] : isForeign ? [OF_ISOLATED] : []),
  ];
}

/** `pwd -P` prints nothing in a folder that is gone, or its last name. */
function endedWhere(folder: string, project: string): string {
  const isGone = folder === "" || (isWithin(folder, project) && lookAt(folder) === undefined);
  return isGone ? "The folder in which the command ended is gone" : "The command ended outside the project";
}

const FOLDER_OF_ISOLATED =
  "this command was isolated, and its text does not name the folder where it ended, which any program that it ran could have reported. 'cd FOLDER' with the folder's name is kept";

/** The folders, without links, that a command's own `cd` with literal words may lead to: each from each that was named before. */
function foldersNamed({ request, place }: Job): ReadonlySet<string> {
  const named = new Set([place.cwd]);
  for (const { words, depth } of readCommand(request).fragments) {
    const [program, ...rest] = words;
    const target = rest.findLast(({ text }) => !text.startsWith("-"));
    const goes = depth === 0 && (program?.text === "cd" || program?.text === "pushd");
    if (!goes || target?.kind !== "literal") continue;
    for (const folder of [...named].slice(0, MOST_NAMED)) {
      const path = resolve(folder, target.text);
      named.add(realPath(path) ?? path);
    }
  }
  return named;
}

/** More folders than this are not told apart. */
const MOST_NAMED = 32;

const TOO_MANY = `The exported variables are not kept for the next command: more than ${MAX_VARIABLES}, or more than ${MAX_VARIABLE_BYTES} bytes`;

const OF_ISOLATED =
  "The exported variables are not kept for the next command: this command was isolated, and any program that it ran could have set them";

/** Set by the broker or by each shell for itself. */
const NEVER = /^(?:HOME|USER|LOGNAME|SHELL|PWD|OLDPWD|SHLVL|_|ENV|BASH_ENV|BASHOPTS|SHELLOPTS|SUBSTRATE_.*)$/;

/** Leaves out what the next command gets anyway, and what the caller set for this one. */
function exported({ request, environment, sent }: Job, reported: ReadonlyMap<string, string>): Variables {
  if (request.session_state === "folder") return {};
  const own = Object.fromEntries(
    [...reported].filter(
      ([name, value]) => !NEVER.test(name) && value !== environment.variables[name] && value !== sent?.[name],
    ),
  );
  return withoutWorldVariables({ ...request, env: own }).env ?? {};
}

function fits(variables: Variables): boolean {
  const all = Object.entries(variables);
  const bytes = all.reduce((sum, [name, value]) => sum + Buffer.byteLength(name + value), 0);
  return all.length <= MAX_VARIABLES && bytes <= MAX_VARIABLE_BYTES;
}
