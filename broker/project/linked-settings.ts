/**
 * What rules the broker may lie elsewhere: a person keeps policies in a repository, and SUBSTRATE_HOME has links to them. A command that
 * works there must not write its own policy.
 */
import { lstatSync } from "node:fs";
import { join } from "node:path";
import { isWithin } from "../model/folders.ts";
import { entriesIn, wayTo } from "./link-ways.ts";
import type { Home } from "../settings/home.ts";

/** A home has some ten policies. */
const MOST_FILES = 1000;

/** Lists the links and files outside SUBSTRATE_HOME that lead to its settings, approvals and policies. Real paths, a moment's state. */
export function linkedSettings({
  root,
  config,
  approvals,
  policies,
}: Pick<Home, "root" | "config" | "approvals" | "policies">): readonly string[] {
  const files = entriesIn(policies, MOST_FILES).flatMap((entry) =>
    entry.isSymbolicLink() ? [join(policies, entry.name)] : [],
  );
  const links = [...[config, approvals, policies].filter(isLink), ...files];
  return [...new Set(links.flatMap(wayTo))].filter((path) => !isWithin(path, root));
}

function isLink(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
  } catch {
    return false;
  }
}
