/** Folds a span's children: many similar children become a line with their number and their ends. */
import type { Span } from "../../../schemas/generated/types.ts";
import { durationWords, programEnd, programName } from "./program-words.ts";
import { harmlessLine } from "../terminal/terminal.ts";

/** Maximum of similar children shown in full. */
const MOST_ALIKE = 8;

/** In larger groups: number of first children and of failed children shown. */
const FIRST_ALIKE = 3;
const FAILED_ALIKE = 5;

/** Maximum of rows of a span, in all groups together. */
const MOST_CHILDREN = 60;

/** A span and its children. */
export type Tree = {
  readonly span: Span;
  readonly children: Tree[];
  /** Children were not fetched: too many spans, or too deep. */
  cut?: true;
};

export type Shown = { readonly tree: Tree } | { readonly folded: string };

type Group = { readonly name: string; readonly members: Tree[] };

export function folded(children: readonly Tree[]): readonly Shown[] {
  const shown = new Set<Tree>();
  const places = new Map<Tree, Group>();
  for (const group of groupsOf(children)) {
    const kept = keptOf(group.members);
    for (const tree of kept) shown.add(tree);
    const rest = group.members.filter((tree) => !kept.has(tree));
    const [first] = rest;
    if (first !== undefined) places.set(first, { name: group.name, members: rest });
  }
  const rows: Shown[] = [];
  const left: Tree[] = [];
  for (const tree of children) {
    const group = places.get(tree);
    if (!shown.has(tree) && group === undefined) continue;
    if (rows.length >= MOST_CHILDREN) left.push(...(group?.members ?? [tree]));
    else rows.push(group === undefined ? { tree } : { folded: words(group) });
  }
  return left.length === 0 ? rows : [...rows, { folded: words({ name: "", members: left }) }];
}

function groupsOf(children: readonly Tree[]): readonly Group[] {
  const groups = new Map<string, Group>();
  for (const tree of children) {
    const name = nameOf(tree.span);
    const key = name ?? tree.span.span_id;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { name: name ?? "", members: [tree] });
    else group.members.push(tree);
  }
  return [...groups.values()];
}

/** Group name of a similar span; undefined for spans never folded, such as commands. */
function nameOf(span: Span): string | undefined {
  const { event_type: type, connection, violation } = span;
  if (type === "exec") return programName(span);
  if (type === "connection") return harmlessLine(`${type} to ${connection?.host}:${connection?.port}`);
  if (type === "violation" && violation !== undefined && violation !== null)
    return harmlessLine(`${type} ${violation.kind}`);
  return type === "builtin_command" ? type : undefined;
}

function keptOf(members: readonly Tree[]): ReadonlySet<Tree> {
  if (members.length <= MOST_ALIKE) return new Set(members);
  const failed = members.filter(({ span }) => hasFailed(span)).slice(0, FAILED_ALIKE);
  return new Set([...members.slice(0, FIRST_ALIKE), ...failed]);
}

export function hasFailed({ exit, outcome }: Span): boolean {
  return (exit ?? 0) !== 0 || outcome === "refused" || outcome === "failed" || outcome === "lost";
}

/** Describes a folded group: `292 more of cc: 290 exit 0, 2 exit 1; 12.3 s in all; 584 below them` */
function words({ name, members }: Group): string {
  const ends = new Map<string, number>();
  for (const { span } of members) ends.set(endOf(span), (ends.get(endOf(span)) ?? 0) + 1);
  const counts = [...ends].sort(([, one], [, other]) => other - one).map(([end, count]) => `${count} ${end}`);
  const took = members.reduce((sum, { span }) => sum + (span.duration_ms ?? 0), 0);
  const below = members.reduce((sum, tree) => sum + sizeOf(tree) - 1, 0);
  return [
    `… ${members.length} more${name === "" ? "" : ` of ${name}`}: ${counts.join(", ")}`,
    ...(took === 0 ? [] : [`${durationWords(took)} in all`]),
    ...(below === 0 ? [] : [`${below} below them`]),
  ].join("; ");
}

function endOf(span: Span): string {
  if (span.event_type === "exec") return programEnd(span);
  return span.connection?.ended ?? (span.exit === null ? (span.outcome ?? "") : `exit ${span.exit}`);
}

function sizeOf({ children }: Tree): number {
  return children.reduce((sum, child) => sum + sizeOf(child), 1);
}
