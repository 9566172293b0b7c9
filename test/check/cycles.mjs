/**
 * Nodes of a directed graph that lie on a cycle: Tarjan's strongly connected components of two nodes or more.
 * @param {ReadonlyMap<string, ReadonlySet<string>>} graph
 * @returns {string[]}
 */
export function membersOfCycles(graph) {
  /** @type {Map<string, { index: number, low: number, onStack: boolean }>} */
  const seen = new Map();
  /** @type {string[]} */
  const stack = [];
  /** @type {string[]} */
  const members = [];

  /** @param {string} node */
  function visit(node) {
    const state = { index: seen.size, low: seen.size, onStack: true };
    seen.set(node, state);
    stack.push(node);
    for (const next of graph.get(node) ?? []) {
      const known = seen.get(next);
      if (known === undefined) state.low = Math.min(state.low, visit(next).low);
      else if (known.onStack) state.low = Math.min(state.low, known.index);
    }
    if (state.low === state.index) {
      const component = stack.splice(stack.indexOf(node));
      for (const one of component) Object.assign(seen.get(one) ?? {}, { onStack: false });
      if (component.length > 1) members.push(...component);
    }
    return state;
  }

  for (const node of graph.keys()) if (!seen.has(node)) visit(node);
  return members.sort();
}
