/** Differences between the recorded environment and today's, whether they mattered or not. Pure. */
import type { FsDiff, Isolation, ReplayDrift, Span } from "../../schemas/generated/types.ts";
import type { ChangedFiles } from "./compare-changes.ts";
import { patternCovers } from "../../world/backend.ts";
import { fileScope } from "../policy/files/file-scope.ts";
import type { Effective } from "../model/effective.ts";
import { covers } from "../worlds/world-spec.ts";

type Facts = Readonly<Record<string, string | null>>;

/** The environment found by the replay, in place of the restored PATH, locale and files. */
export type Found = {
  readonly path: string | null;
  readonly locale: string | null;
  readonly dirty_hash: string | null;
};

export function driftOf(recorded: Span, now: Span, found: Found): readonly ReplayDrift[] {
  const [was, is] = [factsOf(recorded), { ...factsOf(now), ...found }];
  const parts = [...Object.keys(was), ...Object.keys(is)];
  return [...new Set(parts)].flatMap((what) => {
    const [then, today] = [was[what] ?? null, (is as Facts)[what] ?? null];
    return then === today || isUnknown(what, then, today) ? [] : [{ what, recorded: then, now: today }];
  });
}

/** A missing hash of the files is unknown, not a difference. */
function isUnknown(what: string, then: string | null, today: string | null): boolean {
  return what === "dirty_hash" && (then === null || today === null);
}

function factsOf({ policy_id, policy_hash, policy_commit, replay_context: context, isolation }: Span): Facts {
  const image = context?.world_image ?? null;
  return {
    policy_id,
    policy_hash,
    policy_commit,
    init_hash: image?.init_hash ?? null,
    filter_hash: image?.filter_hash ?? null,
    os_release: image?.os_release ?? null,
    kernel: image?.kernel ?? null,
    project_commit: context?.project_commit ?? null,
    dirty_hash: context?.dirty_hash ?? null,
    env_hash: context?.env_hash ?? null,
    path: context?.path ?? null,
    locale: context?.locale ?? null,
    umask: context?.umask ?? null,
    cwd: context?.cwd ?? null,
    ...isolationFacts(isolation),
  };
}

/** Leaves out the overlay: every replay has an overlay, to discard its changes. */
function isolationFacts(isolation: Isolation | null): Facts {
  const words = Object.entries(isolation ?? {}).filter(([part]) => part !== "overlay");
  return Object.fromEntries(words.map(([part, word]) => [`isolation.${part}`, word]));
}

/** Bound on named files. */
const MAX_NAMED = 20;

/** Returns when a change of a path starts to count: for the command's own changes, after its end; for others, after its start. */
export function sinceWhen({ span_id: id, ts, fs_diff: diff }: Span): (path: string) => number {
  const end = Date.parse(ts);
  const start = Math.min(timeOf(id), end);
  if (diff === null || (diff.truncated && diff.tree_hash === null) || isLong(diff)) return () => end;
  if (diff.held) return () => start;
  const own = new Set([...diff.writes, ...diff.mods, ...diff.deletes, ...diff.dirs].flatMap(pathAndAbove));
  return (path) => (own.has(path) ? end : start);
}

/** Whether the list is truncated: unlisted changes may be the command's own too. */
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

/** Reports files changed since the recorded run, by any program. */
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

/** Reports unvisited files, so that nobody takes them for unchanged. */
export function unseenFiles({ complete, looked, unread }: ChangedFiles): readonly string[] {
  const late = `The project has many files: only the first ${looked} were checked for later changes`;
  const closed = `${unread} files or folders of the project cannot be read (no permission, or a name that is not UTF-8), so changes in them are unknown`;
  return [...(complete ? [] : [late]), ...(unread > 0 ? [closed] : [])];
}

/**
 * Tests whether a name in the project may be reported: names hidden by a policy are invisible in a world, and hidden here too.
 */
export function tellable({ policies }: Effective, project: string, home: string): (path: string) => boolean {
  const scopes = policies.map(({ document }) => fileScope(document, project, home));
  // A `[…]` stands for one character; treated as `?`, so that doubtful names are denied.
  const denied = scopes.flatMap(({ denyRead }) =>
    denyRead.map((pattern) => pattern.replace(/(?<!\\)\[[^\]]*\]/g, "?")),
  );
  return (path) => {
    const full = path === "" ? project : `${project}/${path}`;
    const isSeen = scopes.every(({ read, write }) => covers([...read, ...write], full));
    return isSeen && !denied.some((pattern) => patternCovers(pattern, full));
  };
}
