import { BoundedMap } from "../model/bounded-map.ts";
import type { Decision, Program } from "../policy/index.ts";
import { BELIEVED_MS } from "../policy/program-paths.ts";

/** How many decisions are kept, and how long a command may be to be kept, in characters. */
const MAX_KEPT = 2000;
const MAX_COMMAND = 4096;

/** All that a decision depends on but for files: it is a pure function of these and of what programs stand for. */
export type Question = {
  /** Hash of everything that holds: an edited policy has another. */
  readonly policy: string;
  readonly shell: string;
  readonly command: string;
  /** The request's variables, sorted. */
  readonly env: string;
  readonly cwd: string;
  readonly project: string;
};

/** What a command's programs stand for, by how they are written. */
export type Programs = ReadonlyMap<string, Program | null>;

export type Judged = {
  readonly decision: Decision;
  readonly programs: Programs;
  /** Whose repository a folder belongs to was asked: another command may change that at any moment. */
  readonly restsOnFolders: boolean;
};

type Kept = Judged & { readonly at: number };

/**
 * Decisions that were made before. Agents repeat themselves, and reading and deciding a command costs more than
 * anything else that happens on its path in this process. The longest unused goes first.
 */
export class Decisions {
  readonly #kept = new BoundedMap<string, Kept>(MAX_KEPT);

  /** `find` says what a program stands for now: a decision holds as long as its programs are the same ones. */
  of(question: Question, decide: () => Judged, find: (program: string) => Program | null): Decision {
    if (question.command.length + question.env.length > MAX_COMMAND) return decide().decision;
    const { policy, shell, project, cwd, command, env } = question;
    const key = `${policy}\0${shell}\0${project}\0${cwd}\0${env}\0${command}`;
    const known = this.#kept.get(key);
    const kept = (known === undefined ? undefined : stillTrue(known, find)) ?? {
      ...decide(),
      at: performance.now(),
    };
    this.#kept.delete(key);
    if (!kept.restsOnFolders && !restsOnFiles(kept.decision)) this.#kept.set(key, kept);
    return kept.decision;
  }

  /** After a policy was read: its rules may stand on other lines now, which its hash does not show. */
  clear(): void {
    this.#kept.clear();
  }
}

/** Its programs are looked up again from time to time: each look costs, and commands come by the thousand. */
function stillTrue(kept: Kept, find: (program: string) => Program | null): Kept | undefined {
  const now = performance.now();
  if (now - kept.at < BELIEVED_MS) return kept;
  const same = [...kept.programs].every(([name, program]) => isSame(find(name), program));
  return same ? { ...kept, at: now } : undefined;
}

function isSame(one: Program | null, other: Program | null): boolean {
  return one?.path === other?.path && one?.real === other?.real;
}

/** Folders and links decide what may be written: such an answer is found anew each time. */
function restsOnFiles({ rule }: Decision): boolean {
  return rule?.list === "fs.write" || rule?.list === "fs.deny_write";
}
