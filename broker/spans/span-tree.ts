/** The spans below one, depth first and in pages: each after its parent, children in the order in which they were made. */
import type { Span } from "../../schemas/generated/types.ts";
import type { Trace } from "./trace.ts";

export type TreeQuery = {
  readonly root: string;
  /** The last span of the page before; undefined for the first page, which begins with the root. */
  readonly after: string | undefined;
  readonly limit: number;
  /** Whose spans the asker may see: of others' nothing below is shown either. */
  readonly sees: (agent: string | null) => boolean;
};

export type TreePage = { readonly spans: readonly Span[]; readonly next: string | null };

/** What is deeper is left out, and has a tree of its own: a program that runs itself again and again has no end. */
export const DEEPEST = 256;

/** Children that are looked up at once. */
const AT_ONCE = 64;

/** Characters of commands on one page. */
const MOST_TEXT = 2 * 1024 * 1024;

type Source = Pick<Trace, "find" | "childIds" | "parentOf">;

type Branch = { readonly span: string; after: string | undefined; ready: string[] };

/** Undefined when `after` is not a span of this tree. */
export function treePage(trace: Source, { root, after, limit, sees }: TreeQuery): TreePage | undefined {
  const path = after === undefined ? [root] : pathTo(trace, root, after);
  if (path === undefined) return undefined;
  const first = after === undefined ? trace.find(root) : undefined;
  const spans = first === undefined ? [] : [first];
  const branches = path
    .slice(0, DEEPEST)
    .map((span, depth): Branch => ({ span, after: path[depth + 1], ready: [] }));
  let text = 0;
  for (let branch = branches.at(-1); branch !== undefined; branch = branches.at(-1)) {
    const last = spans.at(-1);
    if (last !== undefined && (spans.length >= limit || text >= MOST_TEXT))
      return { spans, next: last.span_id };
    const child = nextOf(trace, branch);
    if (child === undefined) branches.pop();
    // Whoever names a parent may name any.
    const isNew = child !== undefined && branches.every(({ span }) => span !== child);
    const span = isNew ? trace.find(child) : undefined;
    if (span === undefined || !sees(span.agent_id)) continue;
    spans.push(span);
    text += span.cmd?.length ?? 0;
    if (branches.length < DEEPEST) branches.push({ span: span.span_id, after: undefined, ready: [] });
  }
  return { spans, next: null };
}

/** The spans from the root down to one. */
function pathTo(trace: Source, root: string, span: string): readonly string[] | undefined {
  const path = [span];
  for (let above: string | null | undefined = span; above !== root && path.length <= DEEPEST; ) {
    above = trace.parentOf(above);
    if (above === undefined || above === null) return undefined;
    path.unshift(above);
  }
  return path[0] === root ? path : undefined;
}

function nextOf(trace: Source, branch: Branch): string | undefined {
  if (branch.ready.length === 0) branch.ready = [...trace.childIds(branch.span, branch.after, AT_ONCE)];
  const child = branch.ready.shift();
  branch.after = child ?? branch.after;
  return child;
}
