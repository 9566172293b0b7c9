/**
 * Files that a tool runs or loads by itself, later, outside every world. One table for all who ask: a change to one of them is
 * listed as `autorun`, held changes with such a one elsewhere do not apply by themselves, and the shipped policies for agents
 * deny the rows that say so (a test compares them).
 *
 * Patterns are those of a deny list and can be copied into one: `*` stays inside a name, `{a,b}` is each of its words. With
 * `/**` at its end a row counts for everything below too.
 *
 * Left out on purpose: sources that a build only compiles, lock files (what they name is fetched by a tool that was started for
 * it), prose that agents read (AGENTS.md and its like: a diff shows it), and settings that hold values and no programs.
 */
import { OPENED } from "./run-later-opened.ts";
import { REPOSITORIES } from "./run-later-repositories.ts";
import { STARTED } from "./run-later-started.ts";

export type RunLater = {
  readonly paths: readonly string[];
  readonly reason: string;
  /**
   * `repositories`: sealed in every repository of a project (`broker/policy/files/default-denials.ts`).
   * `agents`: what starts unasked or widens an agent's rights; the shipped policies for agents deny it in the project's folder, to plain
   * commands; isolated ones have it held (`broker/policy/files/held-names.ts`).
   * Absent: what starts with a tool that a person starts by name, and what branches and installers change all the time.
   */
  readonly denied?: "repositories" | "agents";
};

export const RUN_LATER: readonly RunLater[] = [...REPOSITORIES, ...OPENED, ...STARTED];

/** The names in a project's folder for which the rows marked `agents` stand, one for each word of their braces. */
export const RUN_LATER_FOR_AGENTS: readonly string[] = RUN_LATER.filter(({ denied }) => denied === "agents")
  .flatMap(({ paths }) => paths.flatMap(spelledOut))
  .map(nameOf);

/** A pattern of the table without `**` at its ends. */
export function nameOf(pattern: string): string {
  return pattern.slice("**/".length).replace(/\/\*\*$/, "");
}

/** Each of the words that a pattern's braces stand for. */
export function spelledOut(pattern: string): readonly string[] {
  const group = /\{([^{}]*)\}/.exec(pattern);
  if (group === null) return [pattern];
  return String(group[1])
    .split(",")
    .flatMap((word) => spelledOut(pattern.replace(group[0], () => word)));
}
