/** Takes a connection back: files as they were, or without what `init` added where somebody changed them since. */
import { unifiedDiff } from "../../../broker/learn/unified-diff.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { understood } from "./connect.ts";
import {
  hashOf,
  readSettings,
  refuseReadOnly,
  removeEmpty,
  type SettingsFile,
  writeSettings,
} from "./files.ts";
import { withoutPart } from "./parts.ts";
import {
  type ConnectedFile,
  type Connection,
  connections,
  forgetConnection,
  keptCopy,
  MIXED,
  writeConnection,
} from "./records.ts";

export type Restored = {
  readonly path: string;
  /** `restored`: byte for byte as before; `taken_out`: changed since, so only our parts went; `kept`: another place needs it. */
  readonly how: "restored" | "removed" | "taken_out" | "unchanged" | "kept";
  readonly patch: string;
  readonly notes: readonly string[];
};

type Step = {
  readonly restored: Restored;
  readonly file: SettingsFile;
  /** Undefined: the file goes. */
  readonly text: string | undefined;
  readonly made: readonly string[];
};

/** What a broker reads before config.yaml goes away: a missing file alone would leave the last settings in force. */
const NO_SETTINGS = "{}\n";

/**
 * Undoes every file, or throws before the first one is written.
 *
 * @param reread has a running broker read config.yaml.
 */
export async function undoConnection(
  terminal: Terminal,
  connection: Connection,
  roots: readonly string[],
  reread: () => Promise<void>,
): Promise<readonly Restored[]> {
  const { home } = terminal;
  const heir = connections(home).find(
    ({ agent, project }) => agent === connection.agent && project !== connection.project,
  );
  const isShared = ({ target }: ConnectedFile): boolean =>
    heir !== undefined && target === configTarget(connection);
  const steps = connection.files.map((file) =>
    isShared(file) ? kept(file, roots) : stepOf(terminal, file, roots),
  );
  for (const { file, text } of steps) if (text !== file.text) refuseReadOnly(file);
  for (const { file, text } of steps) {
    if (text === file.text) continue;
    const leaves = text === undefined && file.target === configTarget(connection);
    if (leaves) {
      writeSettings(file, NO_SETTINGS);
      await reread();
    }
    writeSettings(leaves ? { ...file, text: NO_SETTINGS } : file, text);
  }
  const made = steps.flatMap((step) => step.made);
  removeEmpty([...new Set(made)].sort((one, other) => one.length - other.length));
  const shared = connection.files.filter(isShared);
  if (heir !== undefined && shared.length > 0) {
    const others = heir.files.filter(({ target }) => shared.every((file) => file.target !== target));
    writeConnection(home, { ...heir, files: [...shared, ...others] });
  }
  forgetConnection(home, connection);
  return steps.map(({ restored }) => restored);
}

function configTarget({ files }: Connection): string | undefined {
  return files.find(({ parts }) => parts.some(({ kind }) => kind === "config-agent"))?.target;
}

function kept({ path }: ConnectedFile, roots: readonly string[]): Step {
  const file = readSettings(path, roots);
  const notes = ["it keeps the agent's policy: the agent is connected in another place too"];
  return { restored: { path, how: "kept", patch: "", notes }, file, text: file.text, made: [] };
}

function stepOf(terminal: Terminal, connected: ConnectedFile, roots: readonly string[]): Step {
  const { path, before, after, made } = connected;
  const file = readSettings(path, roots);
  const step = (how: Restored["how"], text: string | undefined, notes: readonly string[] = []): Step => ({
    restored: { path, how, patch: unifiedDiff(file.text ?? "", text ?? "", path), notes },
    file,
    text,
    made,
  });
  if (file.text === undefined)
    return step("unchanged", undefined, before === null ? [] : ["the file is gone"]);
  const now = hashOf(file.text);
  if (now === before) return step("unchanged", file.text);
  if (now === after && before === null) return step("removed", undefined);
  const copy =
    now === after && before !== null && before !== MIXED ? keptCopy(terminal.home, before) : undefined;
  return copy === undefined ? takenOut(connected, file, step) : step("restored", copy);
}

function takenOut(
  { path, parts, before, after }: ConnectedFile,
  file: SettingsFile,
  step: (how: Restored["how"], text: string | undefined, notes: readonly string[]) => Step,
): Step {
  let text = file.text ?? "";
  const why =
    hashOf(text) === after
      ? "there is no copy from before, so only what init added is taken out"
      : "it was changed since, so only what init added is taken out";
  const notes = [why];
  for (const part of parts.toReversed()) {
    const edited = understood(path, () => withoutPart(text, part));
    text = edited.text;
    notes.push(...edited.notes);
  }
  // The broker takes an empty config.yaml for one that is being written, and keeps its last settings.
  const isSettings = parts.some(({ kind }) => kind === "config-agent");
  const isEmpty = before === null || isSettings ? EMPTY.test(text) : false;
  if (text === file.text) return step("unchanged", text, notes);
  return step(isEmpty ? "removed" : "taken_out", isEmpty ? undefined : text, notes);
}

/** Nothing but what a new file begins with. */
const EMPTY = /^\s*(\{\s*("version": 1\s*)?\})?\s*$/;
