/** `approvals.yaml`: a person's permanent approvals, for the person to read and edit. */
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
import { parseDocument } from "yaml";
import type { AlwaysApproval, ApprovalsDocument } from "../../schemas/generated/types.ts";
import { validateApprovalsDocument } from "../../schemas/generated/validators/approvals.js";
import { describeErrors } from "../../schemas/validation-errors.ts";
import { fileIdentity } from "../model/host-paths.ts";
import { type Refusal, refusal } from "../model/refusal.ts";
import { yamlDocument, yamlWords } from "../../schemas/yaml-document.ts";
import type { WrittenAlways } from "./question.ts";

const HEAD = `# Commands that a person approved permanently. An entry applies to exactly this command, in this folder, by this agent,
# under this policy. The file is read before each use: edit it, or remove an entry to be asked again.
approvals: []
`;

const MAX_BYTES = 4 * 1024 * 1024;

type Read = { readonly entries: readonly AlwaysApproval[]; readonly problems: readonly string[] };

/** Called after each reading that finds problems. */
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

  /** Problems that make the whole file ineffective; empty for a valid or a missing file. */
  problems(): readonly string[] {
    return this.#current().problems;
  }

  /**
   * Finds the first entry equal to `wanted`, and returns its id. An entry without `project_folder` or `cwd_folder` matches any
   * folder at that path.
   */
  find(wanted: AlwaysApproval): string | undefined {
    const key = keyOf(wanted);
    const isSame = (kept: string | undefined, now: string | undefined): boolean =>
      kept === undefined || kept === now;
    const areSameFolders = (entry: AlwaysApproval): boolean =>
      isSame(entry.project_folder, wanted.project_folder) && isSame(entry.cwd_folder, wanted.cwd_folder);
    return this.#current().entries.find((entry) => keyOf(entry) === key && areSameFolders(entry))?.id;
  }

  /** Appends an entry and keeps people's comments. A file that does not load is left unchanged. */
  write(entry: AlwaysApproval): WrittenAlways | Refusal {
    const [first] = this.#current().problems;
    if (first !== undefined)
      return notKept(`the file does not load: ${first}`, "Mend the file, then answer again");
    return orRefusal(() => this.#write(entry));
  }

  /**
   * Returns the file's current content, compared before each use: an edit takes effect at once, and a broken file approves
   * nothing.
   */
  #current(): Read {
    const identity = identityOf(this.#path);
    if (identity === this.#identity) return this.#read;
    this.#identity = identity;
    this.#read = identity === "missing" ? { entries: [], problems: [] } : readApprovals(this.#path);
    if (this.#read.problems.length > 0) this.#onProblems(this.#read.problems);
    return this.#read;
  }

  /**
   * Writes a temporary file for renaming, so that neither a reader nor a crash meets half a file. A symbolic link stays a link.
   */
  #write(entry: AlwaysApproval): WrittenAlways {
    const isThere = statSync(this.#path, { throwIfNoEntry: false }) !== undefined;
    const path = isThere ? realpathSync(this.#path) : this.#path;
    const document = parseDocument(isThere ? readFileSync(path, "utf8") : HEAD);
    const list = document.get("approvals");
    if (list === null || list === undefined) document.set("approvals", document.createNode([entry]));
    else document.addIn(["approvals"], document.createNode(entry));
    const sequence = document.get("approvals") as { flow?: boolean };
    // The initial list is `[]`; write the entries on lines of their own.
    sequence.flow = false;
    const text = document.toString({ lineWidth: 0 });
    if (Buffer.byteLength(text) > MAX_BYTES)
      throw new Error(`the file would become longer than ${MAX_BYTES} bytes and would no longer load`);
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

/** Writes a file through to the disk; removes it after a failure. */
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
    return notKept(why, "Approve it with --once or --session, or mend the file system error");
  }
}

/** All fields that must be equal; a missing field counts as the schema's default. */
function keyOf(entry: AlwaysApproval): string {
  const { policy, profile, agent, project, cwd, cmd, shell, argv, env_hash, stdin_sha256, background } =
    entry;
  const { stdin, world } = entry;
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
    stdin ?? null,
    world ?? null,
    background ?? "kill",
    programs,
  ]);
}

function readApprovals(path: string): Read {
  try {
    const stat = statSync(path);
    // Reading a pipe would block, and reading a device may never end.
    if (!stat.isFile()) return broken(`${path}: it is not a regular file or a link to one`);
    if (stat.size > MAX_BYTES) return broken(`${path}: it is longer than ${MAX_BYTES} bytes`);
    return parseApprovals(readFileSync(path, "utf8"), path);
  } catch (error) {
    return broken(`${path}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function parseApprovals(text: string, path: string): Read {
  const { document, lines } = yamlDocument(text);
  const place = (offset: number): string => {
    const { line, col } = lines.linePos(offset);
    return `${path}:${line}:${col}`;
  };
  const [wrong] = [...document.errors, ...document.warnings];
  if (wrong !== undefined) return broken(`${place(wrong.pos[0])}: ${yamlWords(wrong)}`);
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

/** Identity for comparing, as for policies. A dangling link counts as present but unreadable. */
function identityOf(path: string): string {
  try {
    return fileIdentity(statSync(path, { bigint: true }));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const isMissing = code === "ENOENT" && !isLink(path);
    return isMissing ? "missing" : `cannot be read: ${code}`;
  }
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
}

function notKept(why: string, hint: string): Refusal {
  return refusal("invalid_request", `Cannot write the approval to approvals.yaml: ${why}`, hint);
}
