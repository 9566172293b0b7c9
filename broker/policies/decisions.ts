import { BoundedMap } from "../model/bounded-map.ts";
import type { Decision, Program } from "../policy/index.ts";
import { BELIEVED_MS } from "../policy/program-paths.ts";

/** Most decisions in the cache, and the longest command to cache, in characters. */
const MAX_KEPT = 2000;
const MAX_COMMAND = 4096;

/** All inputs of a decision except files: decisions are a pure function of the question and of the resolved programs. */
export type Question = {
  /** Hash of all policies in force: changes with each edit of a policy. */
  readonly policy: string;
  readonly shell: string;
  readonly command: string;
  /** The request's variables, sorted. */
  readonly env: string;
  readonly cwd: string;
  readonly project: string;
  /** Whether the command has a home of its own, where no list of writes holds. */
  readonly hasOwnHome: boolean;
};

/** Resolved programs of a command, by their spelling. */
export type Programs = ReadonlyMap<string, Program | null>;

export type Judged = {
  readonly decision: Decision;
  readonly programs: Programs;
  /** The decision depends on the repository of a folder: another command may change the repository at any moment. */
  readonly restsOnFolders: boolean;
};

type Kept = Judged & { readonly at: number };

/**
 * A cache of decisions. Agents repeat commands, and reading and deciding a command costs more than any other step of the command
 * in this process. Evicts the least recently used entry.
 */
export class Decisions {
  readonly #kept = new BoundedMap<string, Kept>(MAX_KEPT);

  /** Returns a cached decision while `find` resolves its programs to the same files, or decides anew. */
  of(question: Question, decide: () => Judged, find: (program: string) => Program | null): Decision {
    if (question.command.length + question.env.length > MAX_COMMAND) return decide().decision;
    const { policy, shell, project, cwd, command, env, hasOwnHome } = question;
    const key = `${policy}\0${hasOwnHome}\0${shell}\0${project}\0${cwd}\0${env}\0${command}`;
    const known = this.#kept.get(key);
    const kept = (known === undefined ? undefined : stillTrue(known, find)) ?? {
      ...decide(),
      at: performance.now(),
    };
    this.#kept.delete(key);
    if (!kept.restsOnFolders && !restsOnFiles(kept.decision)) this.#kept.set(key, kept);
    return kept.decision;
  }

  /** Called after a policy was read: rules may be on other lines, which the policy's hash does not include. */
  clear(): void {
    this.#kept.clear();
  }
}

/** Programs are resolved again only after {@link BELIEVED_MS}: lookups cost time, and commands come by the thousand. */
function stillTrue(kept: Kept, find: (program: string) => Program | null): Kept | undefined {
  const now = performance.now();
  if (now - kept.at < BELIEVED_MS) return kept;
  const same = [...kept.programs].every(([name, program]) => isSame(find(name), program));
  return same ? { ...kept, at: now } : undefined;
}

function isSame(one: Program | null, other: Program | null): boolean {
  return one?.path === other?.path && one?.real === other?.real;
}

/** Decisions about writes depend on folders and links, so are not cached. */
function restsOnFiles({ rule }: Decision): boolean {
  return rule?.list === "fs.write" || rule?.list === "fs.deny_write";
}
