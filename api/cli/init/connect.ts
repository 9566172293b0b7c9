/** Plans and writes the settings that connect an agent. */
import { prepareHome } from "../../../broker/settings/home.ts";
import { unifiedDiff } from "../../../broker/learn/unified-diff.ts";
import { isWithin } from "../../../broker/model/folders.ts";
import { Complaint, type Terminal } from "../terminal/terminal.ts";
import type { Agent, Ground, Planned } from "./agents.ts";
import {
  hashOf,
  readSettings,
  refuseReadOnly,
  removeEmpty,
  type SettingsFile,
  writeSettings,
} from "./files.ts";
import { NotUnderstood } from "./not-understood.ts";
import { holdsPart, type Part, withPart } from "./parts.ts";
import {
  type ConnectedFile,
  type Connection,
  connectionOf,
  forgetConnection,
  keepCopy,
  MIXED,
  writeConnection,
} from "./records.ts";

/** A change of a settings file, with its diff. */
export type Change = {
  readonly path: string;
  readonly what: string;
  readonly patch: string;
};

type FilePlan = {
  readonly file: SettingsFile;
  readonly text: string;
  readonly changes: readonly Change[];
  readonly notes: readonly string[];
  /** Parts of ours in `text`: added now, or found. */
  readonly parts: readonly Part[];
};

export type Plan = {
  readonly agent: Agent;
  readonly ground: Ground;
  readonly record: Connection | undefined;
  readonly files: readonly FilePlan[];
};

/** Plans all changes; writes nothing. Throws {@link Complaint} for a file that cannot be edited. */
export function planConnection(terminal: Terminal, agent: Agent, ground: Ground): Plan {
  const record = connectionOf(terminal.home, agent.id, ground.project ?? null);
  const named: Planned = {
    path: terminal.home.config,
    part: { kind: "config-agent", agent: agent.id, policy: agent.id },
    what: `Commands of '${agent.id}' get the policy '${agent.id}' and a socket of their own`,
  };
  const planned = [named, ...agent.plan(ground)];
  const paths = [...new Set(planned.map(({ path }) => path))];
  const files = paths.map((path) =>
    planFile(
      readSettings(path, rootsFor(path, terminal, agent, ground)),
      planned.filter((each) => each.path === path),
      record,
    ),
  );
  for (const { file, changes } of files) if (changes.length > 0) refuseReadOnly(file);
  return { agent, ground, record, files };
}

/** Folders that a settings file may lie in, behind all links. */
export function rootsOf({ home }: Terminal, agent: Agent, ground: Ground): readonly string[] {
  const { variable } = agent;
  const chosen = variable !== undefined && (ground.environment[variable] ?? "") !== "";
  return [
    ground.home,
    home.root,
    ...(chosen ? [agent.folder(ground)] : []),
    ...(ground.project === undefined ? [] : [ground.project]),
  ];
}

/** A link in a repository leads nowhere else: whoever cloned the repository has not made the link, and the diff does not show its end. */
function rootsFor(path: string, terminal: Terminal, agent: Agent, ground: Ground): readonly string[] {
  const { project } = ground;
  return project !== undefined && isWithin(path, project) ? [project] : rootsOf(terminal, agent, ground);
}

function planFile(file: SettingsFile, planned: readonly Planned[], record: Connection | undefined): FilePlan {
  const known = record?.files.find(({ target }) => target === file.target);
  let text = file.text ?? "";
  const steps: Step[] = [];
  const notes: string[] = [];
  const parts: Part[] = [];
  for (const { part, what } of planned) {
    const edited = understood(file.path, () => withPart(text, part));
    notes.push(...edited.notes.map((note) => `'${file.path}': ${note}`));
    if (edited.text !== text) addStep(steps, { path: file.path, what, from: text, to: edited.text });
    const isOurs =
      edited.text !== text ||
      known?.parts.some(({ kind }) => kind === part.kind) === true ||
      (HOOKS.includes(part.kind) && holdsPart(edited.text, part));
    if (isOurs) parts.push(part);
    text = edited.text;
  }
  return { file, text, changes: steps.map(changeOf), notes, parts };
}

type Step = { readonly path: string; readonly what: string; readonly from: string; readonly to: string };

/** Steps with one purpose are one change. */
function addStep(steps: Step[], step: Step): void {
  const last = steps.at(-1);
  if (last?.what === step.what) steps.splice(-1, 1, { ...step, from: last.from });
  else steps.push(step);
}

function changeOf({ path, what, from, to }: Step): Change {
  return { path, what, patch: unifiedDiff(from, to, path) };
}

/** Nobody but `init` writes such a part; the others may have been a person's before. */
const HOOKS: readonly Part["kind"][] = ["json-hook", "toml-hook", "yaml-list", "whole"];

/** Throws {@link Complaint} for a file that is left alone. */
export function understood<Result>(path: string, work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof NotUnderstood)) throw error;
    throw new Complaint(`Cannot edit '${path}': ${error.message}. Nothing was changed`);
  }
}

export function changesOf({ files }: Plan): readonly Change[] {
  return files.flatMap(({ changes }) => changes);
}

export function notesOf({ files }: Plan): readonly string[] {
  return files.flatMap(({ notes }) => notes);
}

/** Writes all files or none. The record comes first: after a crash, `--undo` knows what may have been written. */
export function writePlan(terminal: Terminal, plan: Plan): void {
  const { home, uid } = terminal;
  prepareHome(home, uid);
  const { agent, ground, record } = plan;
  const connection: Connection = {
    agent: agent.id,
    project: ground.project ?? null,
    since: record?.since ?? new Date().toISOString(),
    files: [
      ...plan.files
        .filter(({ parts }) => parts.length > 0)
        .map((each) => connectedFile(terminal, each, record)),
      ...filesElsewhere(plan),
    ],
  };
  writeConnection(home, connection);
  const undo: (() => void)[] = [];
  const made = new Map<string, readonly string[]>();
  try {
    for (const { file, text, changes } of plan.files) {
      if (changes.length === 0) continue;
      const folders = writeSettings(file, text);
      made.set(file.target, folders);
      undo.push(() => {
        writeSettings({ ...file, text }, file.text);
        removeEmpty(folders);
      });
    }
  } catch (error) {
    for (const step of undo.toReversed()) step();
    if (record === undefined) forgetConnection(home, connection);
    else writeConnection(home, record);
    throw error;
  }
  const files = connection.files.map((file) => ({
    ...file,
    made: [...file.made, ...(made.get(file.target) ?? [])],
  }));
  writeConnection(home, { ...connection, files });
}

/** Files of an earlier run, when a variable of the environment named another folder. */
function filesElsewhere({ files, record }: Plan): readonly ConnectedFile[] {
  return (record?.files ?? []).filter(({ target }) => files.every(({ file }) => file.target !== target));
}

function connectedFile({ home }: Terminal, plan: FilePlan, record: Connection | undefined): ConnectedFile {
  const { file, text, parts } = plan;
  const known = record?.files.find(({ target }) => target === file.target);
  const now = file.text === undefined ? null : hashOf(file.text);
  const rest = { path: file.path, target: file.target, parts, made: known?.made ?? [] };
  if (known !== undefined && (known.after === now || text === file.text))
    return { ...known, ...rest, after: known.after === now ? hashOf(text) : known.after };
  const hasOurs = parts.some((part) => HOOKS.includes(part.kind) && holdsPart(file.text ?? "", part));
  const before =
    hasOurs || known?.parts.some((part) => holdsPart(file.text ?? "", part)) === true ? MIXED : now;
  if (before !== null && before !== MIXED) keepCopy(home, file.text ?? "");
  return { ...rest, before, after: hashOf(text) };
}
