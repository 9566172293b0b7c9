/** Finds a command's certain writes that a policy does not allow. Pure, except for calls of `where`. */
import { isPrivate, patternCovers } from "../../../world/backend.ts";
import { fileLists, onlyListed } from "../files/file-lists.ts";
import { fileScope } from "../files/file-scope.ts";
import { isHeldRow } from "../files/held-names.ts";
import { type Arguments, sortArguments } from "../programs/arguments.ts";
import { type CommandWord, HOME_MARK, type SimpleCommand } from "../words/command.ts";
import type { CompiledPolicy, Where } from "../rules/decision.ts";
import { baseName } from "../words/inner.ts";
import { isSystemProgram } from "../rules/match.ts";
import { folderAfter, normalPath, withHome } from "../programs/paths.ts";
import { WRITES, type WriteRow } from "./write-table.ts";

/** A write that the policy does not allow. */
export interface WrongWrite {
  readonly list: "fs.write" | "fs.deny_write";
  readonly pattern: string;
  readonly reason: string;
  /** An isolated command may write the file, and the change is held. */
  readonly held: boolean;
}

/** Most writes examined per command; the world judges the rest. 20,000 redirects took a second. */
const MAX_WRITES = 64;

/**
 * Returns the first write of a command that its policy does not allow, or null; prefers a write refused to isolated commands too.
 * An uncertain write is left to the world, which refuses without a reason.
 *
 * @param homeMoves part of the command line sets HOME, so `~` is unknown.
 */
export function wrongWrite(
  policy: CompiledPolicy,
  command: SimpleCommand,
  where: Where,
  homeMoves: boolean,
): WrongWrite | null {
  if (command.reduced === true) return null;
  const written = targetsOf(command, where, homeMoves).filter(({ path }) => !isOwn(path, where));
  if (written.length === 0) return null;
  const lists = fileLists(policy.document);
  const scope = fileScope(policy.document, where.project, where.home);
  let held: WrongWrite | null = null;
  for (const target of written) {
    const wrong = wrongTarget(target, lists, scope, where.project);
    if (wrong === null || where.leaves?.(target.path) === true) continue;
    if (!wrong.held) return wrong;
    held ??= wrong;
  }
  return held;
}

interface Target {
  readonly path: string;
  /** May be a folder that receives the file: paths below count as well. */
  readonly folder: boolean;
  readonly reason: string;
}

type Lists = ReturnType<typeof fileLists>;
type Scope = ReturnType<typeof fileScope>;

function wrongTarget(
  { path, folder, reason }: Target,
  lists: Lists,
  scope: Scope,
  project: string,
): WrongWrite | null {
  const covers = (pattern: string): boolean => patternCovers(pattern, path);
  const strict = scope.denyWrite.findIndex((row) => covers(row) && !isHeldRow(row, project));
  const denied = strict >= 0 ? strict : scope.denyWrite.findIndex(covers);
  const isOpen = [...scope.write, ...(scope.scratch ?? [])].some((one) => {
    const root = one.endsWith("/**") ? one.slice(0, -3) || "/" : one;
    return isWithin(path, root) || (folder && isWithin(root, path));
  });
  const pattern = lists.deny_write[denied];
  if (pattern !== undefined) {
    const said = `${reason}, and '${path}' may not be written`;
    return { list: "fs.deny_write", pattern, reason: said, held: strict < 0 && isOpen };
  }
  if (isOpen) return null;
  return {
    list: "fs.write",
    pattern: onlyListed(lists.write),
    reason: `${reason}, and no fs.write entry covers '${path}'`,
    held: false,
  };
}

/** Folders and devices that every world has of its own; `/proc` decides about each file itself. */
function isOwn(path: string, where: Where): boolean {
  if (isWithin(path, where.project)) return false;
  if (isWithin(path, "/dev")) return DEVICES.test(path);
  return isPrivate(path) || OWN.some((folder) => isWithin(path, folder));
}

/** `/var/run` and `/var/lock` lead to `/run`. */
const OWN = ["/proc", "/var/run", "/var/lock"] as const;
const DEVICES =
  /^\/dev\/(null|zero|full|random|urandom|tty|stdin|stdout|stderr|ptmx|(fd|shm|pts|tcp|udp|mqueue)(\/.*)?)$/;

function targetsOf(command: SimpleCommand, where: Where, homeMoves: boolean): Target[] {
  const folder = folderAfter(where.cwd, where.home, command.moves);
  const wanted = [...redirected(command), ...argued(command, where)].slice(0, MAX_WRITES);
  return wanted.flatMap(({ word, below, ...rest }) => {
    if (homeMoves && [word.text, ...(command.moves ?? [])].some(holdsHome)) return [];
    const text = withHome(word.text, where.home);
    if (word.kind !== "literal" || text === "" || text === "-") return [];
    if (folder === null && !text.startsWith("/")) return [];
    return [{ ...rest, path: normalPath(below === null ? text : `${text}/${below}`, folder) }];
  });
}

function holdsHome(text: string): boolean {
  return text.includes(HOME_MARK);
}

interface Wanted {
  readonly word: CommandWord;
  /** The name inside the folder, when the word certainly is a folder. */
  readonly below: string | null;
  readonly folder: boolean;
  readonly reason: string;
}

const REDIRECTS: ReadonlySet<string> = new Set([">", ">>", ">|", "&>", "&>>", ">&", "<>"]);

function redirected({ redirects }: SimpleCommand): Wanted[] {
  return redirects.flatMap(({ operator, target }) => {
    if (!REDIRECTS.has(operator) || target === null) return [];
    // `>&2`, `>&2-` and `>&-` are about descriptors.
    if (operator === ">&" && /^\d*-?$/.test(target.text)) return [];
    return [{ word: target, below: null, folder: false, reason: `'${operator}' opens its file for writing` }];
  });
}

function argued({ words }: SimpleCommand, where: Where): Wanted[] {
  const [program, ...others] = words;
  if (program === undefined || program.kind !== "literal") return [];
  const name = baseName(program.text);
  const row = isSystemProgram(withHome(program.text, where.home)) ? WRITES.get(name) : undefined;
  if (row === undefined) return [];
  const args = sortArguments(others, row.facts);
  const has = (option: string): boolean => args.options.has(option);
  if (row.without?.some(has) === true || row.needs?.some(has) === false) return [];
  return wordsOf(row, args);
}

function wordsOf(row: WriteRow, args: Arguments): Wanted[] {
  const { writes, reason } = row;
  const plain = (word: CommandWord): Wanted => ({ word, below: null, folder: false, reason });
  // An operand behind an unknown option may be the option's value.
  const sure = args.operands.filter(({ maybeValue }) => !maybeValue).map(({ word }) => word);
  if (writes.kind === "each") return sure.map(plain);
  if (writes.kind === "destination") return destination(args, reason);
  if (writes.kind === "options")
    return writes.names.flatMap((name) => args.options.get(name) ?? []).map(plain);
  return (writes.unless.some((option) => args.options.has(option)) ? sure : sure.slice(1)).map(plain);
}

function destination({ operands, options }: Arguments, reason: string): Wanted[] {
  const given = options.get("-t") ?? null;
  if (given === null && (operands.length < 2 || operands.some(({ maybeValue }) => maybeValue))) return [];
  const words = operands.map(({ word }) => word);
  const word = given ?? words.at(-1);
  if (word === undefined) return [];
  const sources = given === null ? words.slice(0, -1) : words;
  const isFolder = given !== null || word.text.endsWith("/") || sources.length > 1;
  const names = isFolder ? sources.flatMap(nameOf) : [];
  return names.length === sources.length && names.length > 0
    ? names.map((below) => ({ word, below, folder: false, reason }))
    : [{ word, below: null, folder: true, reason }];
}

/** Returns the name of a source's copy; empty when unknown. */
function nameOf(source: CommandWord): string[] {
  const name = baseName(source.text.replace(/\/+$/, ""));
  return source.kind !== "literal" || ["", ".", ".."].includes(name) || name.includes("\0") ? [] : [name];
}

function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder === "/" ? "/" : `${folder}/`);
}
