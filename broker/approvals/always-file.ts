/** `approvals.yaml`: what a person approved for always, theirs to read and edit. */
import {
  closeSync,
  fsyncSync,
  lstatSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { LineCounter, parseDocument, type YAMLError } from "yaml";
import type { AlwaysApproval, ApprovalsDocument } from "../../schemas/generated/types.ts";
import { validateApprovalsDocument } from "../../schemas/generated/validators.js";
import { describeErrors } from "../../schemas/validation-errors.ts";
import { type Refusal, refusal } from "../model/refusal.ts";
import type { WrittenAlways } from "./question.ts";

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

  /** The id of the first entry that is the same approval as `wanted`. One that names no folder holds for each that has the path. */
  find(wanted: AlwaysApproval): string | undefined {
    const key = keyOf(wanted);
    const isSameFolder = ({ project_folder: folder }: AlwaysApproval): boolean =>
      folder === undefined || folder === wanted.project_folder;
    return this.#current().entries.find((entry) => keyOf(entry) === key && isSameFolder(entry))?.id;
  }

  /** Writes an entry behind what people wrote, comments kept. A file that does not load is left as it is. */
  write(entry: AlwaysApproval): WrittenAlways | Refusal {
    const [first] = this.#current().problems;
    if (first !== undefined) return notKept(`it does not load: ${first}`, "Mend the file, then answer again");
    return orRefusal(() => this.#write(entry));
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
  #write(entry: AlwaysApproval): WrittenAlways {
    const isThere = statSync(this.#path, { throwIfNoEntry: false }) !== undefined;
    const path = isThere ? realpathSync(this.#path) : this.#path;
    const document = parseDocument(isThere ? readFileSync(path, "utf8") : HEAD);
    const list = document.get("approvals");
    if (list === null || list === undefined) document.set("approvals", document.createNode([entry]));
    else document.addIn(["approvals"], document.createNode(entry));
    const sequence = document.get("approvals") as { flow?: boolean };
    // `[]` as it is first written: entries belong on lines of their own.
    sequence.flow = false;
    const text = document.toString({ lineWidth: 0 });
    if (Buffer.byteLength(text) > MAX_BYTES)
      throw new Error(
        `with it the file would be longer than ${MAX_BYTES} bytes, and nothing in it would hold`,
      );
    const beside = `${path}.new`;
    writeWhole(beside, text);
    return {
      keep: () => orRefusal(() => moved(beside, path)),
      discard: () => rmSync(beside, { force: true }),
    };
  }
}

function moved(from: string, to: string): undefined {
  renameSync(from, to);
}

/** On the disk when it returns; of what cannot be written nothing stays. */
function writeWhole(path: string, text: string): void {
  const file = openSync(path, "w", 0o600);
  try {
    writeFileSync(file, text);
    fsyncSync(file);
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  } finally {
    closeSync(file);
  }
}

function orRefusal<T>(write: () => T): T | Refusal {
  try {
    return write();
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return notKept(why, "Approve it once or for the session, or mend what the file system says");
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
    const stat = statSync(path);
    // A pipe would be waited for, and a device read for ever.
    if (!stat.isFile()) return broken(`${path}: it is no plain file, and leads to none`);
    if (stat.size > MAX_BYTES) return broken(`${path}: it is longer than ${MAX_BYTES} bytes`);
    return parseApprovals(readFileSync(path, "utf8"), path);
  } catch (error) {
    return broken(`${path}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function parseApprovals(text: string, path: string): Read {
  const lines = new LineCounter();
  const document = parseDocument(text, {
    lineCounter: lines,
    uniqueKeys: true,
    strict: true,
    prettyErrors: false,
  });
  const place = (offset: number): string => {
    const { line, col } = lines.linePos(offset);
    return `${path}:${line}:${col}`;
  };
  const [wrong] = [...document.errors, ...document.warnings];
  if (wrong !== undefined) return broken(`${place(wrong.pos[0])}: ${messageOf(wrong)}`);
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

function messageOf({ code, message }: YAMLError): string {
  return code === "MULTIPLE_DOCS"
    ? "Only one document is read; received another one behind '---'"
    : (message.split("\n")[0] ?? message);
}

function entriesOf({ approvals }: ApprovalsDocument): readonly AlwaysApproval[] {
  return approvals ?? [];
}

function broken(...problems: readonly string[]): Read {
  return { entries: [], problems };
}

/** As policies are compared. A link that leads nowhere is there, and cannot be looked at. */
function identityOf(path: string): string {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
    return `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const isMissing = code === "ENOENT" && !isLink(path);
    return isMissing ? "missing" : `cannot be looked at: ${code}`;
  }
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
}

function notKept(why: string, hint: string): Refusal {
  return refusal("invalid_request", `Cannot write the approval to approvals.yaml: ${why}`, hint);
}
