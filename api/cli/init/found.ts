/** Finds the coding agents that are installed on this machine, and those that `substrate init` connected. */
import { accessSync, constants, existsSync, statSync } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";
import type { Home } from "../../../broker/settings/home.ts";
import { AGENTS, type Ground } from "./agents.ts";
import { textOf } from "./files.ts";
import { isAsWritten } from "./parts.ts";
import { type Connection, connections } from "./records.ts";

export type FoundConnection = Pick<Connection, "project" | "since"> & {
  readonly files: readonly string[];
  /** Whether every file still has what `init` wrote. */
  readonly intact: boolean;
};

export type FoundAgent = {
  readonly agent: string;
  readonly title: string;
  /** Path of its program on PATH. */
  readonly program: string | null;
  /** Its settings folder, if there is one. */
  readonly settings: string | null;
  readonly connected: readonly FoundConnection[];
};

export function findAgents(home: Home, ground: Ground): readonly FoundAgent[] {
  const all = connections(home);
  return AGENTS.map((agent) => {
    const folder = agent.folder(ground);
    return {
      agent: agent.id,
      title: agent.title,
      program: programOf(agent.programs, ground),
      settings: existsSync(folder) ? folder : null,
      connected: all.filter((each) => each.agent === agent.id).map(foundConnection),
    };
  });
}

export function foundConnection({ project, since, files }: Connection): FoundConnection {
  return { project, since, files: files.map(({ path }) => path), intact: isIntact(files) };
}

function isIntact(files: Connection["files"]): boolean {
  return files.every(({ target, parts }) => {
    const text = textOf(target) ?? "";
    // The operator may give the agent another policy.
    return parts.every((part) => part.kind === "config-agent" || isAsWritten(text, part));
  });
}

/** The first program on PATH that this user may run. */
function programOf(names: readonly string[], { environment }: Ground): string | null {
  const folders = (environment["PATH"] ?? "").split(delimiter).filter(isAbsolute);
  const paths = names.flatMap((name) => folders.map((folder) => join(folder, name)));
  return paths.find(isProgram) ?? null;
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
