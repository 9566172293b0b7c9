/**
 * What the broker believes of an agent. A guest may be taken over, and its agent then says anything: each message must have its shape,
 * and no path may lead out of the project, because the broker moves code for git away on this host by such paths.
 */
import { normalize } from "node:path";
import type { FsDiff } from "../schemas/generated/types.ts";
import { validateAgentMessage } from "../schemas/generated/validators/agent-message.js";
import { describeErrors } from "../schemas/validation-errors.ts";
import type { WorldSpec } from "../world/backend.ts";
import type { Parsed } from "../world/wire/peer.ts";

/** Returns what is wrong with a message, undefined if nothing is. */
export function faultIn({ kind, name, value }: Parsed): string | undefined {
  const document = { [kind]: { [name]: value === undefined ? null : value } };
  if (validateAgentMessage(document)) return undefined;
  return describeErrors(document, validateAgentMessage.errors ?? [])[0]?.message ?? "it has another shape";
}

/** Thrown for a path that leads out of the project. */
export class OutOfProject extends RangeError {
  override readonly name = "OutOfProject";

  constructor(path: string) {
    super(`it names '${path}', which is not in the project`);
  }
}

export type Ground = Pick<WorldSpec, "project" | "gitFolder">;

/** Returns an absolute path that lies in the project or its git folder. Throws {@link OutOfProject}. */
export function inProject({ project, gitFolder }: Ground, path: string): string {
  const roots = gitFolder === undefined ? [project] : [project, gitFolder];
  const isBelow = roots.some((root) => path === root || path.startsWith(root === "/" ? root : `${root}/`));
  if (!isBelow || normalize(path) !== path) throw new OutOfProject(path);
  return path;
}

/** Returns a listing whose relative paths stay below the project. Throws {@link OutOfProject}. */
export function belowProject(changes: FsDiff): FsDiff {
  const { writes, mods, deletes, dirs, autorun } = changes;
  for (const path of [writes, mods, deletes, dirs, autorun].flat())
    if (path.startsWith("/") || normalize(path) !== path || path === ".." || path.startsWith("../"))
      throw new OutOfProject(path);
  return changes;
}
