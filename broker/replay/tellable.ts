import { patternCovers } from "../../world/backend.ts";
import { fileScope } from "../policy/file-scope.ts";
import type { Effective } from "../model/effective.ts";
import { covers } from "../worlds/world-spec.ts";

/** Whether a name in the project may be told: what a policy lets nobody read has no name inside a world, and none here. */
export function tellable({ policies }: Effective, project: string, home: string): (path: string) => boolean {
  const scopes = policies.map(({ document }) => fileScope(document, project, home));
  // A `[…]` stands for one letter: in doubt it is denied.
  const denied = scopes.flatMap(({ denyRead }) =>
    denyRead.map((pattern) => pattern.replace(/(?<!\\)\[[^\]]*\]/g, "?")),
  );
  return (path) => {
    const full = path === "" ? project : `${project}/${path}`;
    const isSeen = scopes.every(({ read, write }) => covers([...read, ...write], full));
    return isSeen && !denied.some((pattern) => patternCovers(pattern, full));
  };
}
