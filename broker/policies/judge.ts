/** Reads and judges commands by every policy in force. Nothing is run, charged or recorded here. */
import type { StartFolders } from "../project/start-folders.ts";
import { isRefusal, type Refusal } from "../model/refusal.ts";
import { join } from "node:path";
import type { ConfigDocument, ExecuteRequest } from "../../schemas/generated/types.ts";
import { assignedPolicy, touchedPolicies } from "./assignment.ts";
import type { Decisions, Judged } from "./decisions.ts";
import { fileScope } from "../policy/files/file-scope.ts";
import type { BaseEnvironment } from "../model/environment.ts";
import type { BaseEnvironments } from "../settings/environment.ts";
import { isForeignGit } from "../git/foreign.ts";
import { type GitFolders, gitFolderInside } from "../git/folder.ts";
import type { GitNamed } from "../git/named.ts";
import type { Job } from "../model/job.ts";
import type { Listed, ListedFolders } from "./listed.ts";
import {
  type Decision,
  decideAll,
  type Program,
  type ReadCommand,
  readArgv,
  readShell,
  type Where,
  withVariables,
} from "../policy/index.ts";
import type { Effective } from "../model/effective.ts";
import type { Place } from "../model/place.ts";
import type { Policies } from "./policies.ts";
import type { ProgramPaths } from "../policy/program-paths.ts";
import type { Marks } from "../project/marks.ts";
import type { Profiles } from "../project/profiles.ts";
import { folderOf, isWithin, NO_PROJECT, type ProjectRules } from "../project/projects.ts";
import { leadsElsewhere } from "../project/stray-paths.ts";
import type { Site } from "../model/site.ts";

/** The broker's parts needed to find the policies in force. */
export type GroundNeeds = {
  readonly config: () => ConfigDocument;
  readonly listed: ListedFolders;
  readonly policies: Policies;
  readonly profiles: Profiles;
  readonly marks: Pick<Marks, "below">;
  readonly gitFolders: GitFolders;
  readonly gitNamed: GitNamed;
  readonly startFolders: Pick<StartFolders, "of">;
  readonly projectRules: () => ProjectRules;
  readonly around: { readonly home: string };
};

/** The broker's parts needed to judge the programs of a command. */
export type StartNeeds = Pick<GroundNeeds, "gitFolders" | "projectRules" | "around"> & {
  readonly environments: Pick<BaseEnvironments, "path">;
  readonly programs: Pick<ProgramPaths, "find">;
};

/** The broker's parts needed to judge a command. */
export type JudgeNeeds = StartNeeds & { readonly decisions: Decisions };

/** Policies in force for a request, and the site of its world. */
export type Ground = { readonly effective: Effective; readonly site: Site };

/** @param called the folder that the caller named, if the command begins in another one. */
export function groundOf(
  broker: GroundNeeds,
  agent: string,
  place: Place,
  profile: string | undefined,
  called?: string,
): Ground | Refusal {
  const folder = broker.profiles.of(place, called);
  if (isRefusal(folder)) return folder;
  const config = broker.config();
  const listed = broker.listed.of(config);
  const assigned = assignedPolicy(config, listed, agent, folderOf(place));
  const chosen = broker.policies.effective(assigned, profile === undefined ? folder.names : [profile]);
  if (isRefusal(chosen)) return chosen;
  const effective = narrowedByFolders(broker, listed, place, chosen);
  if (isRefusal(effective)) return effective;
  const { project, identity } = place;
  const git = broker.gitFolders.of(project, broker.projectRules);
  const { home } = broker.around;
  const { uid } = broker.projectRules();
  const gitInside = gitFolderInside(project, uid);
  const gitFolder = git?.folder?.path ?? gitInside ?? join(project, ".git");
  // Without repositories made by commands: git/brought.ts judges these.
  const nested = broker.marks.below(project, identity)?.marked ?? [];
  const gitNamed = broker.gitNamed.of({ project, folder: gitFolder, nested, home, uid });
  const began = broker.startFolders.of(project);
  const profiles = { profiles: folder.files, profile: folder.names[0] };
  return { effective, site: { project, identity, ...profiles, git, gitInside, gitNamed, began } };
}

/**
 * Narrows by the policies of other writable folders. A place without a project (a program on the host) is not narrowed: no policy
 * bounds the program's writes, and only its working directory assigns a policy.
 */
function narrowedByFolders(
  { policies, around }: GroundNeeds,
  listed: Listed,
  { project }: Place,
  chosen: Effective,
): Effective | Refusal {
  if (listed.policies.length === 0 || project === NO_PROJECT) return chosen;
  const { write } = fileScope(chosen.policies[0].document, project, around.home);
  return policies.narrowedBy(chosen, touchedPolicies(listed, project, write));
}

/**
 * Returns a function that finds the policies in force for a running command at each call; undefined while no policy loads. When
 * the profile is unreadable, the last narrowing profiles stay: an agent in the project can write an invalid `.substrate-profile`,
 * and must not keep access that an edited policy takes away.
 */
export function followPolicies(
  broker: GroundNeeds,
  agent: string,
  place: Place,
  profile: string | undefined,
  begunUnder: Effective,
): () => Effective | undefined {
  let last = begunUnder;
  return () => {
    const ground = groundOf(broker, agent, place, profile);
    const effective = isRefusal(ground) ? narrowedAsBefore(broker, agent, place, last) : ground.effective;
    last = effective ?? last;
    return effective;
  };
}

function narrowedAsBefore(
  broker: GroundNeeds,
  agent: string,
  { project }: Place,
  before: Effective,
): Effective | undefined {
  const config = broker.config();
  const assigned = assignedPolicy(config, broker.listed.of(config), agent, project);
  return broker.policies.narrowedAsBefore(assigned, before);
}

/**
 * Judges a command. Variables of the request and of the caller's shell count: either can load code into any program, and move the
 * home folder. `hasOwnHome`: only the world knows where a write below the home goes.
 */
export function judge(
  broker: JudgeNeeds,
  request: ExecuteRequest,
  place: Place,
  effective: Effective,
  environment: BaseEnvironment,
  hasOwnHome = false,
): Decision {
  const { argv, cmd = "" } = request;
  const env = { ...environment.brought, ...request.env };
  const question = {
    policy: effective.hash,
    // Keeps an argv apart from a command text with the same JSON.
    shell: argv === undefined ? (request.shell ?? "sh") : "none",
    command: argv === undefined ? cmd : JSON.stringify(argv),
    env: JSON.stringify(
      Object.keys(env)
        .sort()
        .map((name) => [name, env[name], environment.trusted[name] === env[name]]),
    ),
    project: place.project,
    cwd: place.cwd,
    hasOwnHome,
  };
  const path = env["PATH"] ?? environment.variables["PATH"] ?? broker.environments.path;
  const find = (program: string): Program | null => broker.programs.find(program, path, place.cwd);
  const decide = (): Judged => {
    const programs = new Map<string, Program | null>();
    const resolve = (program: string): Program | null => {
      const known = programs.get(program);
      const found = known === undefined ? find(program) : known;
      programs.set(program, found);
      return found;
    };
    const { home } = broker.around;
    const leaves = (written: string): boolean =>
      (hasOwnHome && isWithin(written, home) && !isWithin(written, place.project)) ||
      isForTheWorld(broker, place, written);
    const read = readCommand(request);
    let restsOnFolders = false;
    const isForeign = (folder: string): boolean => {
      restsOnFolders = true;
      return isForeignGit(folder, place, broker.projectRules, broker.gitFolders);
    };
    const files = { resolve, leaves, given: environment.trusted, isForeignGit: isForeign };
    const wheres = wheresOf(place, home, env, files);
    return {
      decision: decideAll(effective.policies, withVariables(read, env), wheres),
      programs,
      restsOnFolders,
    };
  };
  return broker.decisions.of(question, decide, find);
}

/** Reads a request's command, with or without a shell. */
export function readCommand({ argv, cmd = "", shell = "sh" }: ExecuteRequest): ReadCommand {
  return argv === undefined ? readShell(cmd, shell) : readArgv(argv);
}

/**
 * Whether only the world can judge a write: below a worktree's git folder, which is writable beside the policy, or through links,
 * which only the world resolves. Outside the project, a world refuses to make a folder and names the policy entry to add.
 */
function isForTheWorld(
  broker: Pick<GroundNeeds, "gitFolders" | "projectRules">,
  { project }: Place,
  path: string,
): boolean {
  const git = broker.gitFolders.of(project, broker.projectRules)?.folder;
  return (git !== undefined && isWithin(path, git.path)) || leadsElsewhere(path, isWithin(path, project));
}

/** Returns the places in which a running command's programs are judged: as for the command's own words, with the PATH of its start. */
export function startPlaces(broker: StartNeeds, job: Job): readonly [Where, ...Where[]] {
  const { place, request, environment } = job;
  const { env = {} } = request;
  const path = env["PATH"] ?? environment.variables["PATH"] ?? broker.environments.path;
  const resolve = (program: string): Program | null => broker.programs.find(program, path, place.cwd);
  const isForeign = (folder: string): boolean =>
    isForeignGit(folder, place, broker.projectRules, broker.gitFolders);
  const files = { resolve, leaves: () => true, given: environment.trusted, isForeignGit: isForeign };
  return wheresOf(place, broker.around.home, env, files);
}

/** With another HOME, a policy's `$HOME` is not the world's home: the second reading says nothing about files. */
function wheresOf(
  { project, cwd }: Place,
  home: string,
  env: Readonly<Record<string, string>>,
  files: Required<Pick<Where, "resolve" | "leaves" | "given" | "isForeignGit">>,
): readonly [Where, ...Where[]] {
  const usual = { project, cwd, home, ...files };
  const moved = env["HOME"];
  return moved === undefined || moved === home || !moved.startsWith("/")
    ? [usual]
    : [usual, { ...usual, home: moved, leaves: () => true }];
}
