/** Finds the changes held by a span, also for spans of an earlier broker: the span records the location. */
import { existsSync, realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import { ANY_FOLDER, type Held, type HeldStore, type WorldBackend } from "../../world/backend.ts";
import type { Place } from "../model/place.ts";
import { neverBecause, type ProjectRules } from "../project/projects.ts";
import { quoted, type Refusal, refusal } from "../model/refusal.ts";
import type { SpanRecord } from "../spans/trace.ts";
import { type PastNeeds, pastWords } from "./past.ts";
import type { Home } from "../settings/home.ts";
import type { Worlds } from "../worlds/worlds.ts";

/** The parts of the broker used for finding held changes. */
export type HeldNeeds = PastNeeds & {
  readonly home: Pick<Home, "overlay">;
  readonly worlds: Pick<Worlds, "ending">;
  readonly backend: Pick<WorldBackend, "name" | "held">;
  readonly projectRules: () => ProjectRules;
};

export type FoundChanges = {
  readonly span: SpanRecord;
  readonly held: Held;
  readonly store: HeldStore;
  readonly place: Place;
  /** The agent of the command. */
  readonly agent: string;
};

/**
 * Waits for the end of the span's world, since its overlay is mounted until then. `use`: discarding needs only the layers and
 * works even when the project was replaced.
 */
export async function findHeld(
  broker: HeldNeeds,
  span: SpanRecord,
  use: "project" | "layers",
): Promise<FoundChanges | Refusal> {
  const { overlay, agent_id: agent } = span;
  // A replay's layers belong to no agent; they exist until removed, for a while in part.
  if (span.given?.replays !== undefined)
    return neverHeld(span, "the span is a replay, whose changes are always dropped");
  if (overlay === undefined || agent === null) return neverHeld(span, "the span is not an isolated command");
  if (span.event_type === "command_start") return stillRuns(span);
  const layers = join(broker.home.overlay, span.span_id);
  await broker.worlds.ending.untilGone(layers);
  const store = broker.backend.held;
  if (store === null) return noStore(broker);
  if (!existsSync(layers)) return heldNoMore(broker, span);
  const { project, identity, mounted_at: mountedAt } = overlay;
  // Discarding uses only the names in the project, so any folder at its path is accepted.
  const demanded = use === "layers" ? ANY_FOLDER : identity;
  const held = { layers, project, identity: demanded, mountedAt: BigInt(mountedAt) };
  const found = { span, held, store, place: { project, cwd: project, identity }, agent };
  if (!existsSync(`${project}/.`)) return projectGone(project);
  return (use === "project" ? notThatProject(broker, overlay) : undefined) ?? found;
}

/** Refuses a recreated folder at the project's path, or a folder that may no longer be a project: no apply and no diff. */
function notThatProject(broker: HeldNeeds, overlay: NonNullable<SpanRecord["overlay"]>): Refusal | undefined {
  const { project, identity } = overlay;
  const { dev, ino } = statSync(project);
  if (`${dev}:${ino}` !== identity || realpathSync(project) !== project) return anotherProject(project);
  const never = neverBecause(project, broker.projectRules());
  if (never === undefined) return undefined;
  return refusal(
    "project_not_allowed",
    `Cannot work in ${quoted(project)}: ${never}`,
    "Ask the operator about 'projects' in config.yaml",
  );
}

/** Refuses when another folder stands at the project's path. */
export function anotherProject(project: string): Refusal {
  return refusal(
    "apply_conflict",
    `The changes belong to the project ${quoted(project)}, which is now another folder`,
    "Move the original folder back, then ask again; or discard the changes",
  );
}

function projectGone(project: string): Refusal {
  return refusal(
    "apply_conflict",
    `The changes belong to the project ${quoted(project)}, which no longer exists as a folder`,
    "Move the folder back, then ask again; otherwise the changes expire ('held.max_age_hours')",
  );
}

function neverHeld(span: SpanRecord, why: string): Refusal {
  return refusal(
    "not_found",
    `Span ${quoted(span.span_id)} holds no changes: ${why}`,
    "Use the span_id of a reply whose fs_diff has 'held': true",
  );
}

function stillRuns(span: SpanRecord): Refusal {
  return refusal(
    "busy",
    `The command of span ${quoted(span.span_id)} is still running`,
    "Wait until it ends, then ask again",
    { retry_after_ms: 1000 },
  );
}

function heldNoMore(broker: PastNeeds, span: SpanRecord): Refusal {
  return refusal(
    "not_found",
    `Span ${quoted(span.span_id)} holds no changes: ${pastWords(broker, span)}`,
    "Run the command again to get its changes",
  );
}

function noStore(broker: Pick<HeldNeeds, "backend">): Refusal {
  return refusal(
    "isolation_unavailable",
    `The backend '${broker.backend.name}' can neither show nor apply changes`,
    "Run the command without isolation, or use a host where the 'linux' backend works",
  );
}
