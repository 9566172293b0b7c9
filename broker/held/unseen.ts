/** What a command misses of an earlier one, and what it means: changes that are held are in no later command's project. */
import { basename } from "node:path";
import type { FsDiff, Span } from "../../schemas/generated/types.ts";
import { timeLimit } from "../../world/backend.ts";
import { isRefusal, quoted } from "../model/refusal.ts";
import { changePath } from "./change-path.ts";
import { findHeld } from "./find-held.ts";
import { someOf } from "./hint.ts";
import { entryOf, holdersOf, type ListNeeds } from "./list-held.ts";

/** How programs say that a file, module or program is missing, and npm and others that a lock file is, or an old one. */
const MISSING =
  /No such file or directory|cannot find|could not (?:find|resolve)|not found|MODULE_NOT_FOUND|No module named|ENOENT|does not exist|with an existing|are in sync|not up to date/gi;

const NAME = /[\p{L}\p{N}@.+_-]{2,}/gu;

/** Commands that hold changes, from the newest. */
const MOST_HOLDERS = 20;

const PATIENCE_MS = 2000;

/**
 * Names the newest command of the agent in the project that holds changes at a name from a line about something missing. `said`: the
 * failed command's output. May throw.
 */
export async function unseenWords(
  broker: ListNeeds,
  agent: string,
  project: string,
  said: Buffer,
): Promise<string | undefined> {
  const missing = said
    .toString()
    .split("\n")
    .map((line) => ({ line, rest: line.replaceAll(MISSING, " ") }))
    .filter(({ line, rest }) => rest !== line);
  const names = new Set(missing.flatMap(({ rest }) => rest.match(NAME) ?? []));
  if (names.size === 0) return undefined;
  const holders = await holdersOf(broker, (name) => name === agent, project, MOST_HOLDERS);
  const holder = holders.find((span) => hasName(span, names));
  if (holder === undefined) return undefined;
  // All may be applied by now.
  const limit = timeLimit(PATIENCE_MS);
  if ((await entryOf(broker, holder, limit, "agent")) === undefined) return undefined;
  const { span_id: span, cmd } = holder;
  return `The changes of ${quoted(cmd ?? span)} are held, so this command did not see them, which may be why it failed: 'substrate diff ${span}' shows them, 'substrate apply ${span}' applies them`;
}

/** A folder's own name counts where the command made the folder. */
function hasName({ fs_diff: changes }: Span, names: ReadonlySet<string>): boolean {
  if (changes === null) return false;
  const { dirs, writes, mods } = changes;
  return [...dirs, ...writes, ...mods].some((path) => names.has(basename(path)));
}

/**
 * Names the newest command of the agent in the project that holds changes of the same files: an apply of either makes a conflict of
 * the other, and the agent learns it here rather than at the second apply. `changes`: held by the command that has ended. May throw.
 */
export async function besideWords(
  broker: ListNeeds,
  agent: string,
  project: string,
  { span, changes }: { readonly span: string; readonly changes: FsDiff },
): Promise<string | undefined> {
  const own = filesOf(changes);
  const holders = await holdersOf(broker, (name) => name === agent, project, MOST_HOLDERS);
  const limit = timeLimit(PATIENCE_MS);
  for (const other of holders) {
    if (limit.aborted) return undefined;
    if (other.span_id === span || other.fs_diff === null) continue;
    if (other.overlay?.project !== project || ![...filesOf(other.fs_diff)].some((path) => own.has(path)))
      continue;
    const both = (await stillHeld(broker, other, limit)).filter((path) => own.has(path));
    if (both.length === 0) continue;
    const { span_id: id, cmd } = other;
    return `This command did not see the changes of ${quoted(cmd ?? id)}, which are held too. Both change ${someOf(both)}${changes.truncated ? " and perhaps more" : ""}, and an apply of either makes a conflict of the other: apply or discard those first ('substrate apply ${id}'), then run this command again`;
  }
  return undefined;
}

async function stillHeld(broker: ListNeeds, span: Span, limit: AbortSignal): Promise<readonly string[]> {
  const found = await findHeld(broker, span, "project");
  if (isRefusal(found)) return [];
  const listed = await found.store.list(found.held, limit, "agent");
  return listed.map(({ path }) => changePath(path));
}

function filesOf({ writes, mods, deletes }: FsDiff): ReadonlySet<string> {
  return new Set([...writes, ...mods, ...deletes]);
}
