/** `substrate trace SPAN --tree`: a span and all below it. */
import { DEEPEST } from "../../../broker/spans/span-tree.ts";
import type { Span, TraceTreeReply } from "../../../schemas/generated/types.ts";
import { ask } from "../terminal/replies.ts";
import { printJson, type Terminal } from "../terminal/terminal.ts";
import type { Tree } from "../words/tree-folds.ts";
import { printTree } from "../words/tree-lines.ts";

/** A command leaves a hundred thousand programs at most, and nobody reads so many; more would fill the memory. */
const MOST_SPANS = 200_000;

const A_PAGE = 500;

type Found = { readonly tree: Tree; readonly depth: number };

export type TreeOptions = { readonly json?: boolean; readonly all?: boolean };

export async function showTree(terminal: Terminal, id: string, options: TreeOptions): Promise<number> {
  const tree = await grow(terminal, id);
  if (options.json === true) printJson(terminal, tree);
  else printTree(terminal, tree, options.all === true);
  return 0;
}

/** Each span comes after its parent, so that one look at each is enough. */
async function grow(terminal: Terminal, id: string): Promise<Tree> {
  const known = new Map<string | null, Found>();
  const path = `/v1/trace/${encodeURIComponent(id)}/tree?limit=${A_PAGE}`;
  let root: Tree | undefined;
  for (let cursor: string | null = ""; cursor !== null; ) {
    const after: string = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`;
    const page: TraceTreeReply = await ask<TraceTreeReply>(terminal, `${path}${after}`);
    for (const span of page.spans) {
      const tree = added(known, span);
      root ??= tree;
    }
    cursor = page.next_cursor;
    if (cursor === null || known.size < MOST_SPANS || root === undefined) continue;
    root.cut = true;
    break;
  }
  if (root === undefined) throw new Error(`The tree of ${id} came without it`);
  return root;
}

function added(known: Map<string | null, Found>, span: Span): Tree {
  const above = known.get(span.parent_span);
  const depth = (above?.depth ?? -1) + 1;
  const tree: Tree = { span, children: [], ...(depth >= DEEPEST ? { cut: true as const } : {}) };
  known.set(span.span_id, { tree, depth });
  above?.tree.children.push(tree);
  return tree;
}
