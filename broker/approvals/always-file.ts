/** `approvals.yaml`: what a person approved for always, theirs to read and edit. */
import {
  closeSync,
  fsyncSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  statSync,
  writeSync,
} from "node:fs";
import { LineCounter, parseDocument } from "yaml";
import type { AlwaysApproval, ApprovalsDocument } from "../../schemas/generated/types.ts";
import { validateApprovalsDocument } from "../../schemas/generated/validators.js";
import { describeErrors } from "../../schemas/validation-errors.ts";
import { type Refusal, refusal } from "../refusal.ts";

const HEAD = `# What a person approved for always. Each entry holds for exactly this command, in this folder, of this agent, under
# this policy and no other. It is read again before it is used: edit it, or take an entry out to be asked again.
approvals: []
`;

const MAX_BYTES = 4 * 1024 * 1024;

type Read = { readonly entries: readonly AlwaysApproval[]; readonly problems: readonly string[] };

/** Told of each reading that finds something wrong. */
type OnProblems = (problems: readonly string[]) => void;

export class AlwaysFile {
  readonly #path: string;
  readonly #onProblems: OnProblems;
  #identity = "";
  #read: Read = { entries: [], problems: [] };

  constructor(path: string, onProblems: OnProblems) {
    this.#path = path;
    this.#onProblems = onProblems;
  }

  /** Why nothing in the file holds; none when it loads, or is not there. */
  problems(): readonly string[] {
    return this.#current().problems;
  }

  /** The id of the first entry that is the same approval as `wanted`. */
  find(wanted: AlwaysApproval): string | undefined {
    const key = keyOf(wanted);
    return this.#current().entries.find((entry) => keyOf(entry) === key)?.id;
  }

  /** Adds an entry behind what people wrote, comments kept. A file that does not load is left as it is. */
  add(entry: AlwaysApproval): Refusal | undefined {
    const { problems } = this.#current();
    const [first] = problems;
    if (first !== undefined) return notKept(`it does not load: ${first}`, "Mend the file, then answer again");
    try {
      this.#write(entry);
      return undefined;
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      return notKept(why, "Approve it once or for the session, or mend what the file system says");
    }
  }

  /** The file as it is now: compared before each use, so an edit holds at once, and a broken file holds nothing. */
  #current(): Read {
    const identity = identityOf(this.#path);
    if (identity === this.#identity) return this.#read;
    this.#identity = identity;
    this.#read = identity === "missing" ? { entries: [], problems: [] } : readApprovals(this.#path);
    if (this.#read.problems.length > 0) this.#onProblems(this.#read.problems);
    return this.#read;
  }

  /** Beside and renamed, so that neither a reader nor a crash meets half of it. A link stays one. */
  #write(entry: AlwaysApproval): void {
    const isThere = statSync(this.#path, { throwIfNoEntry: false }) !== undefined;
    const path = isThere ? realpathSync(this.#path) : this.#path;
    const document = parseDocument(isThere ? readFileSync(path, "utf8") : HEAD);
    const list = document.get("approvals");
    if (list === null || list === undefined) document.set("approvals", document.createNode([entry]));
    else document.addIn(["approvals"], document.createNode(entry));
    const sequence = document.get("approvals") as { flow?: boolean };
    // `[]` as it is first written: entries belong on lines of their own.
    sequence.flow = false;
    const file = openSync(`${path}.new`, "w", 0o600);
    try {
      writeSync(file, document.toString({ lineWidth: 0 }));
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(`${path}.new`, path);
  }
}

/** All that must be the same; absent words are the defaults that the schema names. */
function keyOf(entry: AlwaysApproval): string {
  const { policy, profile, agent, project, cwd, cmd, shell, argv, env_hash, stdin_sha256, background } =
    entry;
  const programs = (entry.programs ?? []).map(({ path, identity }) => [path, identity]);
  return JSON.stringify([
    policy,
    profile ?? null,
    agent,
    project,
    cwd,
    cmd === undefined ? null : [cmd, shell ?? "sh"],
    argv ?? null,
    env_hash,
    stdin_sha256 ?? null,
    background ?? "kill",
    programs,
  ]);
}

function readApprovals(path: string): Read {
  try {
    if (statSync(path).size > MAX_BYTES) return broken(`${path}: it is longer than ${MAX_BYTES} bytes`);
    return parseApprovals(readFileSync(path, "utf8"), path);
  } catch (error) {
    return broken(`${path}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function parseApprovals(text: string, path: string): Read {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, uniqueKeys: true, strict: true });
  const place = (offset: number): string => {
    const { line, col } = lines.linePos(offset);
    return `${path}:${line}:${col}`;
  };
  const [wrong] = [...document.errors, ...document.warnings];
  if (wrong !== undefined) return broken(`${place(wrong.pos[0])}: ${wrong.message.split("\n")[0]}`);
  const value: unknown = document.toJS({ maxAliasCount: 100 }) ?? { approvals: [] };
  if (validateApprovalsDocument(value)) return { entries: entriesOf(value), problems: [] };
  const problems = describeErrors(value, validateApprovalsDocument.errors ?? []).map(
    ({ pointer, message }) => {
      const node = document.getIn(pointer, true) as { range?: [number, number, number] } | undefined;
      return `${place(node?.range?.[0] ?? 0)}: ${message}`;
    },
  );
  return broken(...problems);
}

function entriesOf({ approvals }: ApprovalsDocument): readonly AlwaysApproval[] {
  return approvals ?? [];
}

function broken(...problems: readonly string[]): Read {
  return { entries: [], problems };
}

/** As policies are compared. */
function identityOf(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false, bigint: true });
  return stat === undefined
    ? "missing"
    : `${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeNs}:${stat.ctimeNs}`;
}

function notKept(why: string, hint: string): Refusal {
  return refusal("invalid_request", `Cannot write the approval to approvals.yaml: ${why}`, hint);
}
