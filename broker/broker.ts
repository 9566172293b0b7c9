import type { ConfigDocument, WorldImage } from "../schemas/generated/types.ts";
import type {
  BackendChoice,
  DoctorOrder,
  HostCheck,
  HostFinding,
  KeyedMutex,
  WorldBackend,
  WorldSpec,
} from "../world/backend.ts";
import type { Activity } from "./settings/activity.ts";
import type { Budgets } from "./budgets/budgets.ts";
import type { LimitSpans } from "./budgets/limit-spans.ts";
import type { LiveCommands } from "./live/live-commands.ts";
import type { ConfigProblem } from "./settings/config.ts";
import type { AlwaysFile } from "./approvals/always-file.ts";
import type { Approvals } from "./approvals/approvals.ts";
import type { Decisions } from "./policies/decisions.ts";
import type { BaseEnvironments } from "./settings/environment.ts";
import type { GitFolders } from "./git/folder.ts";
import type { GitNamed } from "./git/named.ts";
import type { GitHeads } from "./git/head.ts";
import type { Remotes } from "./git/remotes.ts";
import type { JudgedSettings } from "./git/settings.ts";
import type { ListedFolders } from "./policies/listed.ts";
import type { MadeRepositories } from "./git/made-repositories.ts";
import type { MovedTracked } from "./git/moved-tracked.ts";
import type { Marks } from "./project/marks.ts";
import type { Idempotency } from "./idempotency/idempotency.ts";
import type { Home } from "./settings/home.ts";
import type { Gateway } from "./network/gateway.ts";
import type { NpmRetries } from "./network/npm-retries.ts";
import type { Policies } from "./policies/policies.ts";
import type { Profiles } from "./project/profiles.ts";
import type { HomeLinks } from "./project/home-links.ts";
import type { ProgramFolders } from "./project/program-folders.ts";
import type { ProgramPaths } from "./policy/program-paths.ts";
import type { DirtyFiles } from "./project-files/dirty-files.ts";
import type { ProjectRules } from "./project/projects.ts";
import type { Publisher } from "./publish/publisher.ts";
import type { ScopeTokens } from "./scopes/tokens.ts";
import type { AgentSessions } from "./project/agent-sessions.ts";
import type { StartFolders } from "./project/start-folders.ts";
import type { Sessions } from "./project/sessions.ts";
import type { ShellStates } from "./project/shell-states.ts";
import type { SettleTurns } from "./git/settle-turns.ts";
import type { Shims } from "./shims/shims.ts";
import type { OutputSamples } from "./replay/output-samples.ts";
import type { OutputRooms } from "./worlds/output-room.ts";
import type { OnFault } from "./spans/span-index.ts";
import type { Trace } from "./spans/trace.ts";
import type { SshAgentRelay } from "./ssh-agent/relay.ts";
import type { Surroundings, WarmSpecs } from "./worlds/world-spec.ts";
import type { Worlds } from "./worlds/worlds.ts";

/** Everything a call needs, assembled once by the entry point. Each part has its own file. */
export type Broker = {
  readonly home: Home;
  readonly version: string;
  readonly backend: WorldBackend;
  readonly worlds: Worlds;
  /** Locks each project's held changes. */
  readonly heldMutex: KeyedMutex;
  readonly gateway: Gateway;
  readonly npmRetries: NpmRetries;
  readonly publisher: Publisher;
  /** Undefined for a broker without an ssh-agent to share. */
  readonly sshAgentRelay: SshAgentRelay | undefined;
  readonly sessions: Sessions;
  readonly agentSessions: AgentSessions;
  readonly startFolders: StartFolders;
  readonly shellStates: ShellStates;
  readonly shims: Shims;
  readonly activity: Activity;
  readonly budgets: Budgets;
  readonly liveCommands: LiveCommands;
  readonly limitSpans: LimitSpans;
  readonly idempotency: Idempotency;
  readonly policies: Policies;
  readonly profiles: Profiles;
  readonly gitFolders: GitFolders;
  readonly gitNamed: GitNamed;
  readonly judgedSettings: JudgedSettings;
  readonly remotes: Remotes;
  readonly marks: Marks;
  readonly madeRepositories: MadeRepositories;
  readonly movedTracked: MovedTracked;
  readonly settleTurns: SettleTurns;
  readonly listed: ListedFolders;
  readonly gitHeads: GitHeads;
  readonly dirtyFiles: DirtyFiles;
  readonly trace: Trace;
  readonly outputSamples: OutputSamples;
  readonly outputRoom: OutputRooms;
  readonly approvals: Approvals;
  readonly always: AlwaysFile;
  readonly scopeTokens: ScopeTokens;
  readonly around: Surroundings;
  readonly decisions: Decisions;
  readonly programs: ProgramPaths;
  readonly programFolders: ProgramFolders;
  readonly homeLinks: HomeLinks;
  readonly warmSpecs: WarmSpecs;
  readonly environments: BaseEnvironments;
  /** Init, filter, OS release and kernel, by kind of filter: the parts of a world that a replay compares. */
  readonly worldImages: Readonly<Record<WorldSpec["seccomp"], WorldImage>>;
  /** Default `cwd` of calls: the folder in which the broker started, if that folder can be a project. */
  readonly startedIn: string;
  /** Returns the operator's current settings. */
  readonly config: () => ConfigDocument;
  /** Problems of the settings file while the last good settings stay in force. */
  readonly settingsProblems: () => readonly ConfigProblem[];
  /** Reads the settings again and returns their problems. */
  readonly reloadSettings: () => readonly ConfigProblem[];
  /** Calls `listener` after each reload of valid settings. */
  readonly onSettings: (listener: () => void) => void;
  readonly projectRules: () => ProjectRules;
  /** Logs bugs and failed writes. */
  readonly onFault: OnFault;
};

/** Re-exports from `world/` for assembling a broker or probing the host. */
export { KeyedMutex } from "../world/backend.ts";
export type { BackendChoice, DoctorOrder, HostCheck, HostFinding, WorldBackend };
