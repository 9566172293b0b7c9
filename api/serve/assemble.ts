/** Assembles the broker; no other file knows all parts. */
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, readFileSync, realpathSync } from "node:fs";
import { homedir, release } from "node:os";
import { join } from "node:path";
import { Activity } from "../../broker/settings/activity.ts";
import { AlwaysFile } from "../../broker/approvals/always-file.ts";
import { approvalSpan } from "../../broker/approvals/approval-spans.ts";
import { Approvals } from "../../broker/approvals/approvals.ts";
import { type Broker, KeyedMutex, type WorldBackend } from "../../broker/broker.ts";
import { Budgets } from "../../broker/budgets/budgets.ts";
import { SHARED } from "../../broker/budgets/ledger.ts";
import { ListedFolders } from "../../broker/policies/listed.ts";
import { MadeRepositories } from "../../broker/git/made-repositories.ts";
import { MovedTracked } from "../../broker/git/moved-tracked.ts";
import { hostPath } from "../../broker/project/host-path.ts";
import { linkedSettings } from "../../broker/project/linked-settings.ts";
import { Marks } from "../../broker/project/marks.ts";
import { LimitSpans } from "../../broker/budgets/limit-spans.ts";
import { LiveCommands } from "../../broker/live/live-commands.ts";
import { Config } from "../../broker/settings/config.ts";
import { Decisions } from "../../broker/policies/decisions.ts";
import { BaseEnvironments, hostEnvironment } from "../../broker/settings/environment.ts";
import { GitFolders } from "../../broker/git/folder.ts";
import { HomeLinks } from "../../broker/project/home-links.ts";
import { GitNamed } from "../../broker/git/named.ts";
import { GitHeads } from "../../broker/git/head.ts";
import { Remotes } from "../../broker/git/remotes.ts";
import { JudgedSettings } from "../../broker/git/settings.ts";
import { type Home, prepareHome } from "../../broker/settings/home.ts";
import { Idempotency } from "../../broker/idempotency/idempotency.ts";
import { Policies } from "../../broker/policies/policies.ts";
import { PolicyCommits } from "../../broker/policies/policy-commits.ts";
import { ProgramFolders } from "../../broker/project/program-folders.ts";
import { ProgramPaths } from "../../broker/policy/program-paths.ts";
import { Profiles } from "../../broker/project/profiles.ts";
import { publishSpan } from "../../broker/publish/publisher.ts";
import { Publisher } from "../../broker/publish/publisher.ts";
import { ScopeTokens } from "../../broker/scopes/tokens.ts";
import { OutputRooms } from "../../broker/worlds/output-room.ts";
import { OutputSamples } from "../../broker/replay/output-samples.ts";
import { ShellStates } from "../../broker/project/shell-states.ts";
import { AgentSessions } from "../../broker/project/agent-sessions.ts";
import { StartFolders } from "../../broker/project/start-folders.ts";
import { Sessions } from "../../broker/project/sessions.ts";
import { SettleTurns } from "../../broker/git/settle-turns.ts";
import { agentSockets } from "../../broker/project/shared-sockets.ts";
import { SshAgentRelay } from "../../broker/ssh-agent/relay.ts";
import { Shims } from "../../broker/shims/shims.ts";
import { reloadSpan } from "../../broker/spans/event-span.ts";
import type { OnFault } from "../../broker/spans/span-index.ts";
import { Gateway } from "../../broker/network/gateway.ts";
import { presetsFor } from "../../broker/network/presets/for-broker.ts";
import { NpmRetries } from "../../broker/network/npm-retries.ts";
import { Reaches } from "../../broker/network/reach.ts";
import { DirtyFiles } from "../../broker/project-files/dirty-files.ts";
import type { SpanRecord, Trace } from "../../broker/spans/trace.ts";
import { WarmSpecs } from "../../broker/worlds/world-spec.ts";
import { Worlds } from "../../broker/worlds/worlds.ts";
import type { WorldImage } from "../../schemas/generated/types.ts";
import type { Log } from "../http/context.ts";
import type { Installation } from "./installation.ts";
import { openTrace } from "./open-trace.ts";
import { projectRulesOf } from "./project-rules.ts";

const DEFAULT_IDLE_SECS = 900;

export type Parts = {
  readonly home: Home;
  readonly installation: Installation;
  readonly backend: WorldBackend;
  readonly host: Readonly<Record<string, string | undefined>>;
  readonly uid: number;
  readonly cwd: string;
  readonly log: Log;
};

export async function assembleBroker(parts: Parts): Promise<Broker> {
  const { home, installation, log } = parts;
  prepareHome(home, parts.uid);
  writeDefaultPolicy(home, installation);
  const followers: (() => void)[] = [];
  const config = new Config(home.config, (problems) => {
    if (problems.length === 0) {
      log.info({ file: home.config }, "Settings read");
      for (const follow of followers) follow();
    } else
      log.error(
        { problems: problems.map(({ text }) => text) },
        "Settings do not load; the last good ones stay",
      );
  });
  const onFault = (what: string, error: unknown): void => log.error({ err: error }, what);
  const named = new Set(agentsOf(config));
  followers.push(() => {
    named.clear();
    for (const agent of agentsOf(config)) named.add(agent);
  });
  const isLabel = (agent: string): boolean => !named.has(agent);
  const budgets = new Budgets(isLabel);
  const idempotency = new Idempotency((agent) => (isLabel(agent) ? SHARED : agent));
  const outputSamples = new OutputSamples(() => config.current().replay?.samples ?? true);
  const trace = await openTrace(home, config, onFault, [budgets, idempotency, outputSamples], log);
  const approvals = openApprovals(trace, onFault);
  const scopeTokens = new ScopeTokens(isLabel);
  const decisions = new Decisions();
  const readAgain: (() => void)[] = [];
  const gitHeads = new GitHeads(parts.uid);
  const shims = new Shims(home.shims, onFault);
  const policies = new Policies(
    home.policies,
    installation.policies,
    new PolicyCommits(gitHeads, `/usr/bin:/bin:${hostPath(parts.host["PATH"], realpathSync(homedir()))}`),
    (name, policy, problems, news) => {
      decisions.clear();
      if (news) tellReload(trace, reloadSpan(name, policy, problems), onFault);
      if (policy !== undefined) {
        for (const each of [approvals, scopeTokens]) each.policyRead(policy.source, policy.hash);
        log.info({ policy: name, hash: policy.hash, notes: policy.notes }, "Policy read");
        setImmediate(() => shims.offline.follow(policies.documents()));
      } else
        log.error(
          { policy: name, problems: problems.map(({ text }) => text) },
          "Policy does not load; the last good one stays",
        );
      // Run the followers after the current read has returned: they read policies through the same path.
      if (news) setImmediate(() => readAgain.forEach((follow) => follow()));
    },
  );
  const hidden = home.hidden.map((path) => realpathSync(path));
  const userHome = realpathSync(homedir());
  const agents = agentSockets(parts.host, userHome, parts.uid, new SshAgentRelay(home.sshAgentSocket));
  const around = {
    home: userHome,
    hidden,
    checkout: installation.root,
    installation: installation.sealed,
    linked: () => linkedSettings(home),
    fileProgram: installation.init,
    agents,
  };
  const shellStates = new ShellStates(trace.database, onFault, isLabel);
  const sessions = new Sessions(trace.database, onFault, isLabel, (id) => shellStates.forget(id));
  const marks = new Marks(trace.database, onFault);
  const listed = new ListedFolders(around.home);
  const programFolders = new ProgramFolders(around.home, parts.host["PATH"] ?? "");
  const projectRules = projectRulesOf(
    parts,
    around,
    () => listed.of(config.current()),
    marks,
    programFolders,
  );
  const remotes = new Remotes(home.gitRemotes, parts.uid, onFault);
  const known = { rules: projectRules, wasProject: (folder: string) => sessions.wasProject(folder) };
  const presets = presetsFor(parts.host, known, () => policies.documents(), remotes);
  const gateway = new Gateway({
    reaches: new Reaches(presets),
    budgets,
    record: (line) => trace.event(line),
    observe: (line) => trace.observe(line),
    onFault: (what, error) => onFault(`A world's network: ${what}`, error),
  });
  readAgain.push(() => gateway.recheck());
  const idleMs = (): number => (config.current().worlds?.idle_secs ?? DEFAULT_IDLE_SECS) * 1000;
  const worlds = new Worlds(parts.backend, idleMs);
  return {
    home,
    version: installation.version,
    backend: parts.backend,
    worlds,
    heldMutex: new KeyedMutex(),
    publisher: openPublisher(worlds, sessions, trace, log),
    sshAgentRelay: agents.ssh?.relay,
    gateway,
    npmRetries: new NpmRetries(presets),
    sessions,
    agentSessions: new AgentSessions(trace.database, onFault, isLabel),
    startFolders: new StartFolders(trace.database, onFault),
    shellStates,
    shims,
    activity: new Activity(),
    budgets,
    idempotency,
    liveCommands: new LiveCommands(),
    limitSpans: new LimitSpans({ write: (record) => trace.event(record), onFault }),
    policies,
    profiles: new Profiles(),
    gitFolders: new GitFolders(),
    gitNamed: new GitNamed(),
    judgedSettings: new JudgedSettings(remotes),
    remotes,
    settleTurns: new SettleTurns(),
    marks,
    madeRepositories: new MadeRepositories(trace.database, onFault),
    movedTracked: new MovedTracked(parts.uid),
    listed,
    gitHeads,
    dirtyFiles: new DirtyFiles(),
    trace,
    outputSamples,
    outputRoom: new OutputRooms(),
    approvals,
    scopeTokens,
    always: new AlwaysFile(home.approvals, (problems) =>
      log.error({ problems }, "approvals.yaml does not load, so none of its approvals apply"),
    ),
    around,
    decisions,
    programs: new ProgramPaths(),
    programFolders,
    homeLinks: new HomeLinks(around.home, programFolders),
    warmSpecs: new WarmSpecs(around, parts.uid),
    environments: new BaseEnvironments(hostEnvironment(parts.host), home.root),
    worldImages: worldImages(installation.init, parts.backend),
    startedIn: parts.cwd,
    config: () => config.current(),
    settingsProblems: () => config.problems(),
    reloadSettings: () => config.reload(),
    onSettings: (listener) => followers.push(listener),
    projectRules,
    onFault,
  };
}

/** Records a policy's reload and logs a failed write: any decision or connection may reload, and a full disk must not end the broker. */
function tellReload(trace: Trace, line: SpanRecord, onFault: OnFault): void {
  try {
    trace.event(line);
  } catch (error) {
    onFault("Cannot record the reload of a policy", error);
  }
}

function openApprovals(trace: Trace, onFault: OnFault): Approvals {
  return new Approvals(
    trace.database,
    (pending, event, preview) => {
      const span = approvalSpan(pending, event, preview);
      trace.event(span);
      return span.span_id;
    },
    onFault,
  );
}

function openPublisher(worlds: Worlds, sessions: Sessions, trace: Trace, log: Log): Publisher {
  const publisher = new Publisher({
    worldOf: (session) => worlds.current(session),
    ownerOf: (session) => {
      const { agent, project } = sessions.find(session) ?? { agent: "unknown", project: "unknown" };
      return `agent '${agent}' in '${project}'`;
    },
    onEvent: (event) => {
      const words = { ...event, event: undefined };
      if (event.event === "failed") log.warn(words, "Cannot open a port that a policy publishes");
      else log.info(words, `A port of the host that leads into a world is ${event.event}`);
      try {
        trace.event(publishSpan(event, sessions.find(event.session)));
      } catch (error) {
        log.error({ err: error }, "Cannot record an event of a published port in the trace");
      }
    },
  });
  worlds.onGone((session) => publisher.closeAll(session, "its world has ended"));
  return publisher;
}

/** Agents with their own socket, as named in the settings. */
function agentsOf(config: Config): readonly string[] {
  return Object.keys(config.current().agents ?? {});
}

/** Copies the shipped policy for the operator to edit; never overwrites a file. */
function writeDefaultPolicy(home: Home, installation: Installation): void {
  const own = join(home.policies, "default.yaml");
  if (!existsSync(own)) copyFileSync(join(installation.policies, "default.yaml"), own);
}

/** The image of each seccomp mode. Filters are asked for with each use: an agent's are known when it has answered, and may be others after an upgrade. */
function worldImages(init: string, backend: WorldBackend): Broker["worldImages"] {
  const shared = {
    init_hash: process.platform === "linux" ? hashOf(init) : null,
    os_release: osRelease(),
    kernel: release(),
  };
  const imageOf = (seccomp: keyof Broker["worldImages"]): WorldImage => ({
    ...shared,
    filter_hash: backend.filterHash(seccomp),
  });
  return {
    get enforce() {
      return imageOf("enforce");
    },
    get log() {
      return imageOf("log");
    },
  };
}

function hashOf(file: string): string {
  return `sha256:${createHash("sha256").update(readFileSync(file)).digest("hex")}`;
}

function osRelease(): string | null {
  if (!existsSync("/etc/os-release")) return null;
  return /^PRETTY_NAME="?([^"\n]*)"?$/m.exec(readFileSync("/etc/os-release", "utf8"))?.[1] ?? null;
}
