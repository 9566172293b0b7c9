/**
 * Files that a tool later runs or loads unasked, outside every world. The table has three uses: changes to such files are listed
 * as `autorun`; `changes.auto_apply` applies nothing if such a file changed outside its paths; and the shipped policies for
 * agents deny the marked rows (a test compares the two).
 *
 * Patterns have the syntax of deny lists, and can be copied there: `*` stays inside a name, `{a,b}` stands for each of its words.
 * A row with `/**` at its end includes everything below.
 *
 * Left out on purpose: sources that a build only compiles; lock files (fetched by a tool started for that purpose); prose for
 * agents (AGENTS.md and its like, visible in a diff); and settings with values but no programs.
 */
import { OPENED } from "./run-later-opened.ts";
import { REPOSITORIES } from "./run-later-repositories.ts";
import { STARTED } from "./run-later-started.ts";

export type RunLater = {
  readonly paths: readonly string[];
  readonly reason: string;
  /**
   * `repositories`: sealed in every repository of a project (`broker/policy/files/default-denials.ts`).
   * `agents`: files that start unasked or widen an agent's rights. The shipped policies for agents deny plain commands these
   * files in the project's folder; for isolated commands they are held (`broker/policy/files/held-names.ts`).
   * Absent: files run by a tool that a person starts by name, or changed all the time by branches and installers.
   */
  readonly denied?: "repositories" | "agents";
  /** Of an `agents` row: agents load it from each folder of a project, not only where a session began. */
  readonly anywhere?: true;
};

export const RUN_LATER: readonly RunLater[] = [...REPOSITORIES, ...OPENED, ...STARTED];

/** Names of the rows marked `agents`, in a project's folder or anywhere below it, with braces expanded. */
export const RUN_LATER_FOR_AGENTS: readonly string[] = RUN_LATER.filter(
  ({ denied }) => denied === "agents",
).flatMap(({ paths, anywhere }) => {
  const names = paths.flatMap(spelledOut).map(nameOf);
  return anywhere === true ? [...names, ...names.map((name) => `**/${name}`)] : names;
});

/** Strips `**` from both ends of a pattern. */
export function nameOf(pattern: string): string {
  return pattern.slice("**/".length).replace(/\/\*\*$/, "");
}

/** Expands the braces of a pattern. */
export function spelledOut(pattern: string): readonly string[] {
  const group = /\{([^{}]*)\}/.exec(pattern);
  if (group === null) return [pattern];
  return String(group[1])
    .split(",")
    .flatMap((word) => spelledOut(pattern.replace(group[0], () => word)));
}
