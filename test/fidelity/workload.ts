/** What a row of the table says. Rows are data: how they are run is `rounds.ts`'s affair, whether they agree is `compare.ts`'s. */

import type { Actor } from "../support/users/users.ts";

/** The shipped policies that a row can run under, the strictest first. */
export const STRICTNESS = ["readonly", "strict", "claude-code", "ci"] as const;
export type Strictest = (typeof STRICTNESS)[number];
/**
 * `enforced` is the shipped `default` as an operator has it who has set `mode: enforce`, `isolated` the shipped `strict` of one who
 * isolates every command.
 */
export type PolicyName = "default" | "enforced" | "isolated" | Strictest;

export type Workload = {
  /** What somebody does, in their words. Its folder is named after it. */
  readonly name: string;
  /** Programs that it runs, looked for on PATH. One that is missing makes the row a skip. */
  readonly needs?: readonly string[];
  /** What this machine must be able to do outside every world: a shell command that fails makes the row a skip. */
  readonly tried?: string;
  /** Packages of this checkout's node_modules, copied with what they need into the project's. */
  readonly packages?: readonly string[];
  /** Files of the project, by path. They are there before `prepare`. */
  readonly files?: Readonly<Record<string, string>>;
  /** A shell script that prepares the project outside every world. It ends at its first failure (`set -e`). */
  readonly prepare?: string;
  /** A shell command, run in the project. */
  readonly command: string;
  readonly shell?: "bash";
  readonly stdin?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** How it is run in the world: by the API, or with `substrate exec`. */
  readonly through?: "exec";
  /** Where it is run, in place of the project: a link beside it that `prepare` made. PWD is the link, as in a shell that went there. */
  readonly from?: string;
  /** What is done on the host while the command runs, in this order. What the steps saw is compared too. */
  readonly meanwhile?: readonly Step[];
  /** The strictest shipped policy that allows it; `strict` unless said. */
  readonly strictest?: Strictest;
  /** The policies that it runs under, in place of `default` and the strictest. */
  readonly policies?: readonly PolicyName[];
  /**
   * It installs from the registries of `test/support/registry`, which the user's settings name (`registries.ts`). Nothing that
   * it does in a world may change the home folder.
   */
  readonly registry?: true;
  /** The same command ran on the host before, in another project: the caches of the home folder have what it needs. */
  readonly warm?: true;
  /** What two bare runs do not agree about. */
  readonly varies?: Varies;
  /** Names in the home folder that it makes; compared like the project. Others there are removed unseen. */
  readonly home?: readonly string[];
  /** Policies that refuse it, and a pattern of the notice that must say so. */
  readonly refused?: Partial<Readonly<Record<PolicyName, RegExp>>>;
  /** Whom `refused` is about; everybody unless said. Others must have the same result. */
  readonly refusedTo?: Actor["kind"];
  /** Why it is different today, under which policies. It stays different; the table says that it is known. */
  readonly known?: Partial<Readonly<Record<PolicyName, string>>>;
  /** Fast, and the same today: a row of `npm test`, or (`at length`) of `npm run test:slow` and the plain user's lane alone. */
  readonly quick?: true | "at length";
};

export type Varies = {
  /** Replaced in both outputs before they are compared. */
  readonly output?: readonly (readonly [pattern: RegExp, replacement: string])[];
  /** The lines of the outputs come in any order. */
  readonly order?: true;
  /** Paths whose content is not compared, and whose existence, type and mode are. */
  readonly content?: readonly RegExp[];
  /** Paths whose times are not compared. */
  readonly times?: readonly RegExp[];
  /**
   * Files of which the tool itself says that they may be second names of others, or copies: how many names they have, their mode and
   * their time are not compared, and their content is.
   */
  readonly links?: readonly RegExp[];
  /** Paths that need not be there. */
  readonly paths?: readonly RegExp[];
};

/** `PORT` in the command's environment is a free port; a URL's path is asked of it at 127.0.0.1. */
export type Step =
  /** Asks until the answer matches, and keeps what matched. */
  | { readonly get: string; readonly until: RegExp }
  /** Holds a stream of events (text/event-stream) open, until one matches, while the next step is done. */
  | { readonly events: string; readonly until: RegExp; readonly after: Step }
  /** Holds a WebSocket open, until a message matches, while the next step is done. */
  | { readonly socket: string; readonly protocol?: string; readonly until: RegExp; readonly after: Step }
  /** Writes a file of the project from the host, as an editor saves it. */
  | { readonly write: string; readonly text: string }
  /** Waits until a file of the project, seen from the host, matches. */
  | { readonly seen: string; readonly until: RegExp }
  /** Ends the command from outside, as somebody who presses Ctrl-C. Its end and outputs are not compared then. */
  | { readonly end: true };
