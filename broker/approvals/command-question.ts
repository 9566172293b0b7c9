/** The question about a command, and everything its answer is bound to. */
import { isRefusal, type Refusal, refusal } from "../model/refusal.ts";
import { isUtf8 } from "node:buffer";
import { createHash } from "node:crypto";
import { statSync } from "node:fs";
import type { AlwaysApproval, ApprovalPreview } from "../../schemas/generated/types.ts";
import { isWithin } from "../model/folders.ts";
import { realPath } from "../model/host-paths.ts";
import { isLabel } from "../policies/assignment.ts";
import type { AlwaysFile } from "./always-file.ts";
import { commandEnvironment } from "../settings/environment.ts";
import { isIsolated, type Job, scopesOfJob, secretsOfJob } from "../model/job.ts";
import { type GroundNeeds, groundOf, readCommand } from "../policies/judge.ts";
import {
  loadsCode,
  PASSED_BY_DEFAULT,
  type ReadCommand,
  setsForOthers,
  withVariables,
} from "../policy/index.ts";
import { folderOf, NO_PROJECT } from "../project/projects.ts";
import { type PlaceNeeds, placeOf, placeOnHost } from "../project/request.ts";
import { MOST_OF_COMMAND, MOST_OF_TEXT, notShownWhole } from "./shown.ts";
import { redact, redactRule, redactWords } from "../secrets/redact.ts";
import { folderChanged, policyChanged } from "./ask-person.ts";
import { noPreview } from "./preview-words.ts";
import { type NamedPrograms, namedPrograms } from "./programs.ts";
import type { Grant, Question } from "./question.ts";
import type { WarmSpecs } from "../worlds/world-spec.ts";

/** The parts of the broker used for asking about a command. */
export type QuestionNeeds = PlaceNeeds &
  GroundNeeds & { readonly always: AlwaysFile; readonly warmSpecs: WarmSpecs };

const DEFAULT_TIMEOUT_SECS = 300;

/** Host variables that change a command's output but not its effect. */
const MANNERS = /^(LANG|LANGUAGE|LC_[A-Z]+|TZ|TERM|COLORTERM|NO_COLOR|FORCE_COLOR|CLICOLOR|CLICOLOR_FORCE)$/;

/** Longest question in characters: nobody would read more, and each question stays in memory. */
const MAX_SHOWN = 1024 * 1024;

/** Characters of base64 input kept for a preview. */
const MAX_INPUT = 256 * 1024;

/** Runs the command in its own world and discards the changes, to show the effect of an approval. */
export type TryOut = (job: Job, layers: string) => Promise<ApprovalPreview>;

/** Builds the question from the current state, or refuses an outdated one. Without `tryOut` the question has no preview. */
export function commandQuestion(broker: QuestionNeeds, job: Job, tryOut?: TryOut): Question | Refusal {
  const refused = outdatedBecause(broker, job) ?? tooLong(job);
  if (refused !== undefined) return refused;
  const kept = withoutLongInput(job);
  // A program may be started in a folder of its world's own, whose name on the host means another: outside of the project, and below
  // it where an isolated command has put another folder in its place.
  const { cwd, project } = job.place;
  const isHosts = job.isStart !== true || cwd === project || (isWithin(cwd, project) && !isIsolated(job));
  const folder = isHosts ? madeFolder(job.place.cwd) : undefined;
  const { effective, session, decision } = job;
  const [assigned, narrowing] = effective.policies;
  const command = readCommand(job.request);
  const read = withVariables(command, givenBesidesPath(job));
  const named = withSetVariables(namedPrograms(read, surroundings(broker, job)), command, broker, job);
  const entry = alwaysEntry(job, named, folder);
  const recorded = recordedCommand(job);
  const subject = subjectOf(job);
  const unseen = notShownWhole(subject);
  const unbound = unseen === undefined ? named : { ...named, unknown: [...named.unknown, unseen] };
  const scopes = scopesOfJob(job)?.texts ?? [];
  const home =
    job.ownHome === undefined ? [] : [`The command has a home of its own, '${job.ownHome}', and not yours`];
  const notes = [
    ...notesOf(unbound, recorded.isSecret),
    ...scopes.map(noteOfScope),
    ...home,
    ...notesOfRequest(job.request),
    ...(job.startedAs === undefined
      ? []
      : [`The program is told that its name is ${JSON.stringify(job.startedAs.slice(0, MOST_OF_TEXT))}`]),
  ];
  const isLasting =
    scopes.length === 0 &&
    job.place.project !== NO_PROJECT &&
    entry.project_folder !== undefined &&
    folder !== undefined;
  const offers = offersOf(unbound, recorded.isSecret).filter((how) => how !== "always" || isLasting);
  return {
    kind: "command",
    key: keyOf(job, entry, named),
    span: job.span,
    ...(job.call === undefined ? {} : { call: job.call }),
    agent: job.agent,
    isLabel: isLabel(broker.config(), job.agent),
    session: session.id,
    project: folderOf(job.place),
    cwd: job.place.cwd,
    policyId: effective.id,
    policyHash: effective.hash,
    policies: effective.policies.map(({ source, hash }) => ({ source, hash })),
    profile: narrowing?.id ?? null,
    mode: decision.mode,
    rule: asksByRule(job) ? decision.rule : null,
    recordedRule: asksByRule(job) ? redactRule(decision.rule, secretsOfJob(job)) : null,
    reason: asksByRule(job)
      ? (decision.rule?.reason ?? null)
      : "The caller wants a person to look at the command",
    subject,
    recorded: recorded.text,
    offers,
    notes,
    timeoutMs: Math.min(...effective.policies.map(timeoutSecs)) * 1000,
    outdated: () => outdatedBecause(broker, kept, folder),
    ...(offers.includes("always") ? always(broker, entry) : {}),
    ...(tryOut === undefined ? {} : { preview: previewOf(job, kept, tryOut) }),
    previewFirst: [assigned, narrowing].some((policy) => policy?.document.approval?.preview === "auto"),
  };
}

function previewOf(job: Job, kept: Job, tryOut: TryOut): NonNullable<Question["preview"]> {
  if (kept === job) return (layers) => tryOut(kept, layers);
  const none = noPreview(`The input is longer than ${MAX_INPUT} characters and is not shown`);
  return () => Promise.resolve(none);
}

/** Whether the policy asks; otherwise the caller does. */
function asksByRule({ decision }: Job): boolean {
  return decision.verdict === "ask";
}

/**
 * Refuses when another policy is in force by now, or the folder was replaced. `folder`: the command's own when the question was asked;
 * another command may have put another repository, or a link to one, in its place.
 */
function outdatedBecause(broker: QuestionNeeds, job: Job, folder?: string): Refusal | undefined {
  const { agent, place, called, request, effective } = job;
  // A session's folder may be a repository of its own below the caller's project, whose policy holds all the same.
  const now = (place.project === NO_PROJECT ? placeOnHost : placeOf)(broker, called.cwd);
  if (isRefusal(now)) return now;
  const ground = groundOf(broker, agent, now, request.profile);
  if (isRefusal(ground)) return ground;
  if (ground.effective.hash !== effective.hash)
    return policyChanged({ policyHash: effective.hash, policyId: effective.id });
  // A program may be started in a folder that only its world has.
  const isThere = job.isStart === true || place.cwd === called.cwd || realPath(place.cwd) === place.cwd;
  const isSameFolder =
    folder === undefined || (madeFolder(place.cwd) === folder && realPath(place.cwd) === place.cwd);
  const isSame = isThere && isSameFolder && now.identity === place.identity && now.project === place.project;
  return isSame ? undefined : folderChanged(place.cwd, effective.id);
}

function tooLong({ request: { cmd = "", argv = [], env = {} } }: Job): Refusal | undefined {
  const words = [cmd, ...argv, ...Object.entries(env).flat()];
  const length = words.reduce((sum, word) => sum + word.length, 0);
  if (length <= MAX_SHOWN) return undefined;
  return refusal(
    "invalid_request",
    `A person must approve this command, but its ${length} characters are too many to show (at most ${MAX_SHOWN})`,
    "Write the long parts to a file in the project, or send data through stdin_b64",
  );
}

function withoutLongInput(job: Job): Job {
  if ((job.request.stdin_b64?.length ?? 0) <= MAX_INPUT) return job;
  const { stdin_b64: _left, ...request } = job.request;
  return { ...job, request };
}

function surroundings(broker: QuestionNeeds, job: Job): Parameters<typeof namedPrograms>[1] {
  const env = environmentOf(job);
  const { policies, hash } = job.effective;
  const { write, scratch = [] } = broker.warmSpecs.of(hash, policies, job.site).files;
  return {
    cwd: job.place.cwd,
    project: job.place.project,
    home: env["HOME"] ?? broker.around.home,
    path: env["PATH"] ?? "",
    isInputKnown: !hasLiveInput(job) && job.isStart !== true,
    scratch,
    writable: job.ownHome === undefined ? write : [...write, `${broker.around.home}/**`],
  };
}

/** The variables of the call, as the verdict sees them: they may make any program load code. PATH has been looked through. */
function givenBesidesPath({ environment, request }: Job): Readonly<Record<string, string>> {
  const { PATH: _path, ...given } = { ...environment.brought, ...request.env };
  return given;
}

/** What a part of the line sets for the programs of others is not followed: `export X; X=./a; make`, `for X in …`, `read X`. */
function withSetVariables(
  named: NamedPrograms,
  command: ReadCommand,
  broker: QuestionNeeds,
  job: Job,
): NamedPrograms {
  const passed = job.effective.policies.flatMap(({ document }) => document.world?.env ?? PASSED_BY_DEFAULT);
  const { cwd, project } = job.place;
  const where = { cwd, project, home: broker.around.home, given: givenBesidesPath(job) };
  if (!setsForOthers(command, passed, where)) return named;
  const why = "The command sets variables for the programs that it starts, and they may load what these name";
  return { ...named, unknown: [...named.unknown, why] };
}

function environmentOf({ environment, request, agent, span }: Job): Readonly<Record<string, string>> {
  return commandEnvironment(environment.variables, request.env, agent, span);
}

/** Builds the `always` entry, with everything it is bound to; the other answers are bound to more. `cwdFolder`: the command's. */
function alwaysEntry(
  job: Job,
  { programs }: NamedPrograms,
  cwdFolder: string | undefined,
): Omit<AlwaysApproval, "id"> {
  const { request, effective, place, agent } = job;
  const [, narrowing] = effective.policies;
  const { cmd, argv, shell, stdin_b64, background, world } = request;
  const replaceable = programs.filter((program) => program.replaceable);
  const folder = madeFolder(place.project);
  return {
    policy: effective.id,
    ...(narrowing === undefined ? {} : { profile: narrowing.id }),
    agent,
    project: place.project,
    ...(folder === undefined ? {} : { project_folder: folder }),
    cwd: place.cwd,
    ...(cwdFolder === undefined || place.cwd === place.project ? {} : { cwd_folder: cwdFolder }),
    ...(argv === undefined ? { cmd: cmd ?? "", ...(shell === "bash" ? { shell } : {}) } : { argv }),
    env_hash: `sha256:${sha256(JSON.stringify(variablesThatMatter(job)))}`,
    ...(stdin_b64 === undefined ? {} : { stdin_sha256: sha256(Buffer.from(stdin_b64, "base64")) }),
    ...(hasLiveInput(job) ? { stdin: "live" } : {}),
    ...(world === undefined ? {} : { world }),
    ...(background === "keep" ? { background } : {}),
    ...(replaceable.length === 0
      ? {}
      : { programs: replaceable.map(({ path, identity }) => ({ path, identity })) }),
  };
}

/**
 * Identifies a folder across reboots: a file system may get another device number, so the device is left out. A reused inode
 * number comes with a new birth time, which no program can set. Undefined for a missing folder.
 */
function madeFolder(path: string): string | undefined {
  try {
    const { ino, birthtimeNs } = statSync(path, { bigint: true });
    return `${ino}:${birthtimeNs}`;
  } catch {
    return undefined;
  }
}

/** Of a request: absent stands for 0022. */
function isUsual(umask: string | undefined): boolean {
  return umask === undefined || Number.parseInt(umask, 8) === 0o022;
}

/** The call's own variables, the host's variables without {@link MANNERS}, the name of a home of its own, an unusual umask and name. */
function variablesThatMatter({
  environment,
  request,
  ownHome,
  startedAs,
}: Job): readonly (readonly [string, string])[] {
  const added = Object.entries(request.env ?? {}).map(([name, value]) => [`+${name}`, value] as const);
  const host = Object.entries(environment.bound).filter(([name]) => !MANNERS.test(name));
  // No variable has such a name.
  const home = ownHome === undefined ? [] : ([["=home", ownHome]] as const);
  const umask = isUsual(request.umask) ? [] : ([["=umask", request.umask ?? ""]] as const);
  const name = startedAs === undefined ? [] : ([["=name", startedAs]] as const);
  return [...host, ...added, ...home, ...umask, ...name].sort(([one], [other]) => (one < other ? -1 : 1));
}

function keyOf(job: Job, entry: Omit<AlwaysApproval, "id">, { programs, unknown }: NamedPrograms): string {
  const { effective, session, place, argv } = job;
  const scopes = scopesOfJob(job)?.texts ?? [];
  const parts = [
    "command",
    effective.hash,
    session.id,
    place.identity,
    madeFolder(place.cwd),
    argv,
    entry,
    programs,
    unknown,
    scopes,
  ];
  return sha256(JSON.stringify(parts));
}

function always(
  broker: QuestionNeeds,
  entry: Omit<AlwaysApproval, "id">,
): Pick<Question, "standing" | "writeAlways"> {
  return {
    standing: () => broker.always.find({ ...entry, id: "apr_wanted" }),
    writeAlways: (id) => broker.always.write({ id, ...entry, approved_at: new Date().toISOString() }),
  };
}

function offersOf({ unknown }: NamedPrograms, isSecret: boolean): readonly Grant[] {
  if (unknown.length > 0) return ["once"];
  return isSecret ? ["once", "session"] : ["once", "session", "always"];
}

function notesOf({ unknown }: NamedPrograms, isSecret: boolean): readonly string[] {
  const once = unknown.map((why) => `The command can only be approved for one run: ${why}`);
  const secret =
    "The command cannot be approved permanently: it seems to contain a credential, which approvals.yaml would then contain";
  return isSecret ? [...once, secret] : once;
}

/** What the command's text does not say. */
function notesOfRequest({ background, umask }: Job["request"]): readonly string[] {
  const kept = background === "keep" ? ["Processes that the command leaves go on after it"] : [];
  const isOpen = umask !== undefined && (Number.parseInt(umask, 8) & 0o002) === 0;
  return isOpen
    ? [...kept, `Other users of this machine can write files that the command makes (umask ${umask})`]
    : kept;
}

/** Notes each scope: previews run without scopes, and a permanent approval would outlive them. */
function noteOfScope(text: string): string {
  return `The command runs with '${text}', which was granted before`;
}

function recordedCommand(job: Job): {
  readonly text: string;
  readonly isSecret: boolean;
} {
  const { argv, cmd } = job.request;
  const known = secretsOfJob(job);
  const { text, redacted } =
    argv === undefined ? redact(cmd ?? "", "cmd", known) : redactWords(argv, "cmd", known);
  return { text, isSecret: redacted.length > 0 };
}

/** Whether the client may send input after the answer, such as a script for `python3`. */
function hasLiveInput({ live, wouldStream }: Job): boolean {
  return wouldStream === true || live?.input !== undefined;
}

function subjectOf(job: Job): Question["subject"] {
  const { request, decision, environment } = job;
  const { brought, trusted } = environment;
  const { argv, cmd, shell, stdin_b64, world } = request;
  const strange = Object.entries(brought).filter(([name, value]) => trusted[name] !== value);
  const env = { ...Object.fromEntries(strange), ...request.env };
  const added = Object.entries(env).map(([name, value]) => shownVariable(name, value));
  return {
    ...(argv === undefined ? { cmd: cmd ?? "", shell: shell ?? "sh" } : { argv: [...argv] }),
    ...(added.length === 0 ? {} : { env: added }),
    ...(stdin_b64 === undefined ? {} : inputShown(stdin_b64)),
    ...(hasLiveInput(job) ? { stdin: "live" } : {}),
    ...(world === undefined ? {} : { world }),
    verdict: decision.approved,
  };
}

/**
 * As it is, for what a redaction left out could be where the program is led to. Only a credential that is all of a variable, one word
 * of letters and digits, which no program takes for a setting, stays out.
 */
function shownVariable(name: string, value: string): string {
  const { text } = redact(`${name}=${value}`, "env");
  const isAll = text.startsWith(`${name}=[redacted:`) && text.endsWith("]") && /^[\w.~+-]+$/.test(value);
  return isAll && !loadsCode(name) && !/^NPM_CONFIG_/i.test(name) ? text : `${name}=${value}`;
}

function inputShown(stdin: string): Pick<Question["subject"], "stdin_bytes" | "stdin_text"> {
  const bytes = Buffer.from(stdin, "base64");
  if (!isUtf8(bytes)) return { stdin_bytes: bytes.length };
  return { stdin_bytes: bytes.length, stdin_text: bytes.toString().slice(0, MOST_OF_COMMAND) };
}

function timeoutSecs({ document }: Job["effective"]["policies"][number]): number {
  return document.approval?.timeout_secs ?? DEFAULT_TIMEOUT_SECS;
}

function sha256(data: string | Buffer): string {
  return createHash("sha256").update(data).digest("hex");
}
