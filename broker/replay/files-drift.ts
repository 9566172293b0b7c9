import type { FsDiff, ReplayDrift, Span } from "../../schemas/generated/types.ts";
import type { ChangedFiles } from "./changed-files.ts";

/** How many changed files are named. */
const MAX_NAMED = 20;

/** From when on a change of a path counts: the command's own changes until it had ended, others since it began. */
export function sinceWhen({ span_id: id, ts, fs_diff: diff }: Span): (path: string) => number {
  const end = Date.parse(ts);
  const start = Math.min(timeOf(id), end);
  if (diff === null || (diff.truncated && diff.tree_hash === null) || isLong(diff)) return () => end;
  if (diff.held) return () => start;
  const own = new Set([...diff.writes, ...diff.mods, ...diff.deletes, ...diff.dirs].flatMap(pathAndAbove));
  return (path) => (own.has(path) ? end : start);
}

/** What is not listed may be the command's own as well. */
function isLong({ truncated }: FsDiff): boolean {
  return truncated;
}

function pathAndAbove(path: string): readonly string[] {
  const parts = path.split("/");
  return parts.map((_part, at) => parts.slice(0, parts.length - at).join("/")).concat("");
}

/** UUIDv7 begins with its time in milliseconds (RFC 9562, 5.7). */
function timeOf(id: string): number {
  return Number.parseInt(id.replace("spn_", "").replaceAll("-", "").slice(0, 12), 16);
}

/** The files that were changed meanwhile, by whomever. */
export function filesDrift({ span_id: id }: Span, { paths }: ChangedFiles): readonly ReplayDrift[] {
  if (paths.length === 0) return [];
  const named = paths.slice(0, MAX_NAMED).join(", ");
  const more = paths.length > MAX_NAMED ? `, and ${paths.length - MAX_NAMED} more` : "";
  const since = new Date(timeOf(id)).toISOString();
  return [
    {
      what: "files",
      recorded: `as of ${since}`,
      now: `${paths.length} changed since: ${named}${more}`,
    },
  ];
}

/** Nobody shall take what was not looked at for unchanged. */
export function unseenFiles({ complete, looked, unread }: ChangedFiles): readonly string[] {
  const late = `The project has many files: the first ${looked} were looked at for changes since, and not the others`;
  const closed = `${unread} of the project's files or folders cannot be looked at (closed to this user, or their names are no UTF-8): changes there are not known`;
  return [...(complete ? [] : [late]), ...(unread > 0 ? [closed] : [])];
}
