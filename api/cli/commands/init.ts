import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { realPlace } from "../../../broker/model/real-place.ts";
import { dirname } from "node:path";
import { isRefusal } from "../../../broker/model/refusal.ts";
import { locateProject } from "../../../broker/project/projects.ts";
import { closestName } from "../../../schemas/closest-name.ts";
import { isAnswered } from "../../serve/sockets.ts";
import { type Agent, AGENTS, type Ground } from "../init/agents.ts";
import { changesOf, notesOf, type Plan, planConnection, rootsOf, writePlan } from "../init/connect.ts";
import { textOf } from "../init/files.ts";
import { findAgents } from "../init/found.ts";
import { prove, type Proof } from "../init/proof.ts";
import { connectionOf } from "../init/records.ts";
import { undoConnection } from "../init/undo.ts";
import { isSomebodyHere, typedYes } from "../questions/prompt.ts";
import { refuseInside } from "../terminal/inside.ts";
import { tell } from "../terminal/replies.ts";
import { Complaint, harmlessLine, printJson, printLine, type Terminal } from "../terminal/terminal.ts";
import {
  printBlockers,
  printFound,
  printNotes,
  printPlan,
  printProof,
  printRestored,
} from "../words/init-words.ts";
import { startProcess } from "./broker.ts";
import { variable } from "./command-body.ts";

export type InitOptions = {
  readonly yes?: boolean;
  readonly project?: boolean;
  readonly undo?: boolean;
  readonly json?: boolean;
};

/** Connects an agent or takes the connection back; lists agents without a name. Exit 1: nothing was written, or the proof failed. */
export async function initAgent(
  terminal: Terminal,
  name: string | undefined,
  options: InitOptions,
): Promise<number> {
  refuseInside(terminal, "init");
  if (name === undefined) return list(terminal, options);
  const agent = agentNamed(name);
  const project = options.project === true ? projectOf(terminal) : undefined;
  const ground = groundOf(terminal, project);
  return options.undo === true
    ? await takeBack(terminal, agent, ground, options)
    : await connect(terminal, agent, ground, options);
}

function list(terminal: Terminal, options: InitOptions): number {
  const [wrong] = (["yes", "project", "undo"] as const).filter((each) => options[each] === true);
  if (wrong !== undefined)
    throw new Complaint(`'substrate init --${wrong}' needs an agent: ${namesOfAgents()}`);
  const agents = findAgents(terminal.home, groundOf(terminal, undefined));
  if (options.json === true) printJson(terminal, { agents });
  else printFound(terminal, agents);
  return 0;
}

function agentNamed(name: string): Agent {
  const agent = AGENTS.find(({ id }) => id === name);
  if (agent !== undefined) return agent;
  const near = closestName(
    name,
    AGENTS.map(({ id }) => id),
  );
  const guess = near === undefined ? "" : ` (did you mean '${near}'?)`;
  throw new Complaint(
    `Unknown agent '${harmlessLine(name)}'${guess}: 'substrate init' connects ${namesOfAgents()}`,
  );
}

function namesOfAgents(): string {
  const ids = AGENTS.map(({ id }) => id);
  return `${ids.slice(0, -1).join(", ")} and ${ids.at(-1)}`;
}

function groundOf(terminal: Terminal, project: string | undefined): Ground {
  return {
    home: personHome(terminal),
    project,
    environment: terminal.environment,
    front: terminal.installation.front,
    shell: terminal.installation.shell,
    read: textOf,
  };
}

function personHome(terminal: Terminal): string {
  return variable(terminal, "HOME") ?? homedir();
}

function projectOf(terminal: Terminal): string {
  const place = placeOf(terminal);
  if (isRefusal(place)) throw new Complaint(`${harmlessLine(place.message)}\n  ${harmlessLine(place.hint)}`);
  return place.project;
}

function placeOf(terminal: Terminal): ReturnType<typeof locateProject> {
  const { home, uid, installation, cwd } = terminal;
  const user = realPlace(personHome(terminal));
  return locateProject(
    cwd,
    { home: user, hidden: home.hidden, uid, installation: installation.root, roots: [] },
    "person",
  );
}

async function connect(
  terminal: Terminal,
  agent: Agent,
  ground: Ground,
  options: InitOptions,
): Promise<number> {
  if (!existsSync(ground.front))
    throw new Complaint(
      `'${ground.front}' is missing. Run 'npm run build' in '${terminal.installation.root}', or install the package again`,
    );
  // The agent's settings name the program by its path, and npm may empty its cache at any time.
  if (terminal.installation.root.includes("/_npx/"))
    throw new Complaint(
      `Cannot connect ${agent.title} to this copy, which npx keeps in a cache. Install the package that you gave npx with 'npm install --global', and run 'substrate init ${agent.id}'`,
    );
  const plan = planConnection(terminal, agent, ground);
  const isJson = options.json === true;
  if (!isJson) printPlan(terminal, plan);
  const isChange = changesOf(plan).length > 0;
  const isWanted = !isChange || options.yes === true || (await saysYes(terminal, options));
  if (!isWanted) {
    if (isJson) printJson(terminal, documentOf(plan, false, null));
    return 1;
  }
  if (isChange || plan.record === undefined) writePlan(terminal, plan);
  if (!isJson && isChange) printLine(terminal, "Written");
  const proof = await proofOf(terminal, plan);
  const blockers = agent.blockers(ground);
  if (isJson) printJson(terminal, documentOf(plan, isChange, proof));
  else {
    printNotes(terminal, agent.byHand(ground));
    printProof(terminal, plan, proof);
    printBlockers(terminal, agent.title, blockers);
  }
  return proof.proved && blockers.length === 0 ? 0 : 1;
}

function documentOf(plan: Plan, written: boolean, proof: Proof | null): object {
  const { agent, ground } = plan;
  return {
    agent: agent.id,
    project: ground.project ?? null,
    changes: changesOf(plan),
    notes: notesOf(plan),
    written,
    blockers: agent.blockers(ground),
    by_hand: agent.byHand(ground),
    proof,
  };
}

async function saysYes(terminal: Terminal, { json }: InitOptions): Promise<boolean> {
  if (json === true || !isSomebodyHere(terminal)) {
    terminal.err.write(
      "substrate: Nothing was written: there is nobody to ask. Add --yes to write these changes\n",
    );
    return false;
  }
  if (await typedYes(terminal, "Write it?")) return true;
  terminal.err.write("substrate: Nothing was written\n");
  return false;
}

/** Starts a broker if none runs, and has it read config.yaml: the proof must not meet the agent's socket half open. */
async function proofOf(terminal: Terminal, { agent, ground }: Plan): Promise<Proof> {
  if (!(await isAnswered(terminal.home.controlSocket))) {
    terminal.err.write("substrate: starting the broker, which every command of the agent needs\n");
    await startProcess(terminal, true);
  }
  await tell(terminal, "/v1/policy/reload", {});
  const connection = connectionOf(terminal.home, agent.id, ground.project ?? null);
  if (connection === undefined)
    throw new Complaint("The record of the connection is gone. Run the command again");
  const place = placeOf(terminal);
  return await prove(connection, isRefusal(place) ? undefined : place.cwd, terminal.environment);
}

async function takeBack(
  terminal: Terminal,
  agent: Agent,
  ground: Ground,
  { json }: InitOptions,
): Promise<number> {
  const connection = connectionOf(terminal.home, agent.id, ground.project ?? null);
  if (connection === undefined) {
    if (json === true) printJson(terminal, { agent: agent.id, project: ground.project ?? null, files: [] });
    else printLine(terminal, `${agent.title} was not connected ${placeWords(ground)}: nothing to undo`);
    return 0;
  }
  const written = connection.files.map(({ target }) => dirname(target));
  const roots = [...rootsOf(terminal, agent, ground), ...written];
  const files = await undoConnection(terminal, connection, roots, async () => {
    if (await isAnswered(terminal.home.controlSocket)) await tell(terminal, "/v1/policy/reload", {});
  });
  if (json === true) printJson(terminal, { agent: agent.id, project: ground.project ?? null, files });
  else printRestored(terminal, agent.title, files);
  return 0;
}

function placeWords({ project }: Ground): string {
  return project === undefined ? "in your own settings" : `in '${harmlessLine(project)}'`;
}
