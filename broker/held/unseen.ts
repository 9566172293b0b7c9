/** Why a failed command misses what an earlier one made: changes that are held are in no later command's project. */
import type { Span } from "../../schemas/generated/types.ts";
import { quoted } from "../model/refusal.ts";
import { entryOf, holdersOf, type ListNeeds } from "./list-held.ts";

/** How programs say that a file, module or program is missing. */
const MISSING =
  /No such file or directory|cannot find|could not (?:find|resolve)|not found|MODULE_NOT_FOUND|No module named|ENOENT/i;

const NAME = /[\w@.+-]{2,}/g;

/** Commands that hold changes, from the newest. */
const MOST_HOLDERS = 20;

const PATIENCE_MS = 2000;

/**
 * Names the newest command of the agent in the project that holds changes with a name from a line about something missing. `said`: the
 * failed command's output.
 */
export async function unseenWords(
  broker: ListNeeds,
  agent: string,
  project: string,
  said: Buffer,
): Promise<string | undefined> {
  const lines = said
    .toString("latin1")
    .split("\n")
    .filter((line) => MISSING.test(line));
  if (lines.length === 0) return undefined;
  const names = new Set(lines.flatMap((line) => line.match(NAME) ?? []));
  const holders = await holdersOf(broker, (name) => name === agent, project);
  const holder = holders.slice(0, MOST_HOLDERS).find((span) => hasName(span, names));
  if (holder === undefined) return undefined;
  // All may be applied by now.
  if ((await entryOf(broker, holder, AbortSignal.timeout(PATIENCE_MS))) === undefined) return undefined;
  const { span_id: span, cmd } = holder;
  return `The changes of ${quoted(cmd ?? span)} are held, so this command did not see them: 'substrate diff ${span}' shows them, 'substrate apply ${span}' applies them`;
}

function hasName({ fs_diff: changes }: Span, names: ReadonlySet<string>): boolean {
  if (changes === null) return false;
  const paths = [...changes.dirs, ...changes.writes];
  return paths.some((path) => path.split("/").some((name) => names.has(name)));
}
