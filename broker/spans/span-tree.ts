/** The spans below a root, depth first and in pages: each span after its parent, children in order of creation. */
import type { Span } from "../../schemas/generated/types.ts";
import type { Trace } from "./trace.ts";

export type TreeQuery = {
  readonly root: string;
  /** The last span of the previous page; undefined for the first page, which begins with the root. */
  readonly after: string | undefined;
  readonly limit: number;
  /** Tests whether the caller may see an agent's spans; subtrees of invisible spans are left out. */
  readonly sees: (agent: string | null) => boolean;
};

export type TreePage = { readonly spans: readonly Span[]; readonly next: string | null };

/** Bound on depth, since a program may run itself endlessly. Deeper spans have their own tree. */
export const DEEPEST = 256;

/** Children looked up at once. */
const AT_ONCE = 64;

/** Bound on the characters of commands per page. */
const MOST_TEXT = 2 * 1024 * 1024;

type Source = Pick<Trace, "find" | "childIds" | "parentOf">;

type Branch = { readonly span: string; after: string | undefined; ready: string[] };

/** Returns a page; undefined when `after` belongs to another tree. */
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
    // Callers can name any parent, so skip cycles.
    const isNew = child !== undefined && branches.every(({ span }) => span !== child);
    const span = isNew ? trace.find(child) : undefined;
    if (span === undefined || !sees(span.agent_id)) continue;
    spans.push(span);
    text += span.cmd?.length ?? 0;
    if (branches.length < DEEPEST) branches.push({ span: span.span_id, after: undefined, ready: [] });
  }
  return { spans, next: null };
}

/** Returns the path from the root down to a span. */
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
