/** From a span to the changes that it holds, also after the broker that ran it is gone: the span itself says where. */
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

/** What finding held changes needs of the broker. */
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
  /** Whose command it was. */
  readonly agent: string;
};

/**
 * Waits until the span's world is gone: before that its overlay is still mounted. `use`: to drop changes it does not
 * matter what became of their project.
 */
export async function findHeld(
  broker: HeldNeeds,
  span: SpanRecord,
  use: "project" | "layers",
): Promise<FoundChanges | Refusal> {
  const { overlay, agent_id: agent } = span;
  // Its layers are there until they are removed, in part for a while, and are nobody's.
  if (span.given?.replays !== undefined) return neverHeld(span, "it is a replay, and nothing of one stays");
  if (overlay === undefined || agent === null) return neverHeld(span, "it is no isolated command");
  if (span.event_type === "command_start") return stillRuns(span);
  const layers = join(broker.home.overlay, span.span_id);
  await broker.worlds.ending.untilGone(layers);
  const store = broker.backend.held;
  if (store === null) return noStore(broker);
  if (!existsSync(layers)) return heldNoMore(broker, span);
  const { project, identity, mounted_at: mountedAt } = overlay;
  // Dropping changes looks at no more of the project than the names in it: any folder in its place will do.
  const demanded = use === "layers" ? ANY_FOLDER : identity;
  const held = { layers, project, identity: demanded, mountedAt: BigInt(mountedAt) };
  const found = { span, held, store, place: { project, cwd: project, identity }, agent };
  if (!existsSync(`${project}/.`)) return projectGone(project);
  return (use === "project" ? notThatProject(broker, overlay) : undefined) ?? found;
}

/** A folder that was made anew under the same name, or may be no project any more, gets nothing and shows nothing. */
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

/** The project's name is there, and something else has it. */
export function anotherProject(project: string): Refusal {
  return refusal(
    "apply_conflict",
    `The changes belong to the project ${quoted(project)}, which is another folder now`,
    "Put the folder back where it was, then ask again; discard drops the changes",
  );
}

function projectGone(project: string): Refusal {
  return refusal(
    "apply_conflict",
    `The changes belong to the project ${quoted(project)}, which is no folder any more`,
    "Put the folder back where it was, then ask again; otherwise they go by their age ('held.max_age_hours')",
  );
}

function neverHeld(span: SpanRecord, why: string): Refusal {
  return refusal(
    "not_found",
    `Span ${quoted(span.span_id)} holds no changes: ${why}`,
    "Take the span_id of a reply whose fs_diff has 'held': true",
  );
}

function stillRuns(span: SpanRecord): Refusal {
  return refusal(
    "busy",
    `The command of span ${quoted(span.span_id)} still runs`,
    "Wait for its end, then ask again",
    { retry_after_ms: 1000 },
  );
}

function heldNoMore(broker: PastNeeds, span: SpanRecord): Refusal {
  return refusal(
    "not_found",
    `Span ${quoted(span.span_id)} holds no changes: ${pastWords(broker, span)}`,
    "Run the command again to get its changes anew",
  );
}

function noStore(broker: Pick<HeldNeeds, "backend">): Refusal {
  return refusal(
    "isolation_unavailable",
    `Worlds of backend '${broker.backend.name}' are no place from which changes can be shown or applied`,
    "Run the command without isolation, or use a host where the 'linux' backend works",
  );
}
