import { isRefusal } from "../../../broker/model/refusal.ts";
import { existsSync, lstatSync, readFileSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { basename } from "node:path";
import { type Observed, Observations, type Wanted } from "../../../broker/learn/observations.ts";
import { type Proposal, propose } from "../../../broker/learn/propose.ts";
import type { PathKind } from "../../../broker/learn/write-fates.ts";
import { loadPolicy, type Where } from "../../../broker/policy/index.ts";
import { type FoundCases, readCases } from "../../../broker/policy-cases/read-cases.ts";
import { locateProject } from "../../../broker/project/projects.ts";
import { readTrace, spanIn } from "../../../broker/spans/trace-parts.ts";
import { type LearnedPolicy, learnedDocument, printLearned } from "../words/learned-words.ts";
import { caseFolders, policyFile } from "../terminal/policy-files.ts";
import { Complaint, printJson, type Terminal } from "../terminal/terminal.ts";
import { timeBefore } from "../words/times.ts";

export type LearnOptions = {
  readonly policy: string;
  readonly agent?: string;
  readonly since?: string;
  readonly generalise?: boolean;
  readonly json?: boolean;
};

/** Reads the trace and prints the smallest rules that would have allowed what it holds. Changes nothing, needs no broker. */
export async function learnPolicy(terminal: Terminal, options: LearnOptions): Promise<number> {
  const file = policyFile(terminal, options.policy);
  const loaded = loadPolicy(file, terminal.installation.policies);
  if ("problems" in loaded)
    throw new Complaint(
      `Policy '${options.policy}' does not load:\n${loaded.problems.map(({ text }) => `  ${text}`).join("\n")}`,
    );
  const policy = loaded.ok;
  const since = options.since === undefined ? undefined : timeBefore(options.since, Date.now());
  const { observed, unreadable } = await observe(terminal.home.trace, {
    policyId: policy.id,
    agent: options.agent,
    since,
  });
  const learned = { policy, file, ownFile: copyOf(terminal, file), observed, unreadable };
  const proposal = proposalFor(terminal, learned, options.generalise === true);
  if (options.json === true) printJson(terminal, learnedDocument({ ...learned, proposal }));
  else printLearned(terminal, { ...learned, proposal });
  return 0;
}

function proposalFor(
  terminal: Terminal,
  { policy, file, observed }: Omit<LearnedPolicy, "proposal">,
  generalise: boolean,
): Proposal {
  const home = realpathSync(homedir());
  const proposal = propose({
    policy,
    file,
    text: readFileSync(file, "utf8"),
    observed,
    cases: casesOf(terminal, file),
    whereOf: placesFor(terminal, home),
    kindOf,
    generalise,
  });
  if ("wrong" in proposal)
    throw new Complaint(
      `Cannot propose rules for '${file}': no proposal passed its own test: ${proposal.wrong}`,
    );
  return proposal;
}

/** The lines of the trace are read here, in a process of its own: a broker that did it would keep commands waiting. */
async function observe(
  trace: string,
  wanted: Wanted,
): Promise<{ readonly observed: Observed; readonly unreadable: number }> {
  if (!existsSync(trace)) throw new Complaint(`Cannot find a trace at '${trace}'`);
  const observations = new Observations(wanted);
  const policy = `"policy_id":${JSON.stringify(wanted.policyId)}`;
  let unreadable = 0;
  for await (const text of readTrace(trace)) {
    if (!text.includes(policy)) continue;
    const span = spanIn(text);
    if (span === undefined) unreadable += 1;
    else observations.add(span);
  }
  return { observed: observations.all(), unreadable };
}

function casesOf(terminal: Terminal, file: string): FoundCases["cases"] {
  const found = caseFolders(terminal, file).map(readCases);
  const problem = found.flatMap(({ problems }) => problems)[0];
  if (problem !== undefined)
    throw new Complaint(
      `A case of '${basename(file, ".yaml")}' cannot be read, so the proposal cannot be tested: ${problem.text}`,
    );
  return found.flatMap(({ cases }) => cases);
}

/** Where a command stood; a folder that is gone, or can be no project, is its own. Each is looked at once. */
function placesFor({ home, uid, installation }: Terminal, userHome: string): (cwd: string) => Where {
  const known = new Map<string, Where>();
  const rules = { home: userHome, hidden: home.hidden, uid, installation: installation.root, roots: [] };
  return (cwd) => {
    const place = known.get(cwd) ?? { ...projectOf(cwd, rules), home: userHome };
    known.set(cwd, place);
    return place;
  };
}

function projectOf(
  cwd: string,
  rules: Parameters<typeof locateProject>[1],
): { readonly project: string; readonly cwd: string } {
  const place = locateProject(cwd, rules);
  return isRefusal(place) ? { project: cwd, cwd } : place;
}

function kindOf(path: string): PathKind {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return "missing";
  if (stat.isFile()) return "file";
  return stat.isDirectory() ? "folder" : "other";
}

function copyOf({ home, installation }: Terminal, file: string): string | undefined {
  return file.startsWith(`${installation.policies}/`)
    ? `${home.policies}/${file.slice(installation.policies.length + 1)}`
    : undefined;
}
