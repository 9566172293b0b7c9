/** Whether a command line certainly comes to a part of itself. Pure. */
import type { SyntaxNode } from "unbash";
import type { Reach } from "./command.ts";

/** Bodies that run never, once or often, as other commands decide. */
const CONDITIONAL: ReadonlySet<SyntaxNode["type"]> = new Set<SyntaxNode["type"]>([
  "If",
  "Elif",
  "For",
  "ArithmeticFor",
  "Select",
  "While",
  "Case",
  "CaseItem",
  "Function",
  "Coproc",
  "ParameterExpansion",
]);

/** How `child` is reached, where its parent `node` is reached as `outer` says. */
export function reachIn(node: SyntaxNode, child: SyntaxNode, outer: Reach): Reach {
  if (CONDITIONAL.has(node.type)) return "maybe";
  switch (node.type) {
    case "Script":
      // Of the last statement alone the exit code of the whole line tells something.
      return outer === "always" && child === node.commands.at(-1) ? "last" : outer;
    case "Statement":
      return outer === "last" && node.background === true ? "always" : outer;
    case "AndOr":
      return inList(node, child, outer);
    case "Pipeline":
      return outer;
    default:
      return outer === "last" ? "always" : outer;
  }
}

function inList(
  { commands, operators }: Extract<SyntaxNode, { readonly type: "AndOr" }>,
  child: SyntaxNode,
  outer: Reach,
): Reach {
  const index = commands.findIndex((command) => command === child);
  if (index <= 0) return outer === "last" ? "always" : outer;
  if (outer === "last" && operators.every((operator) => operator === "&&")) return "success";
  if (outer !== "always" && outer !== "last") return "maybe";
  if (operators.slice(0, index).every((operator) => operator === "&&")) return "chain";
  return operators[index - 1] === "||" ? "failure" : "maybe";
}

/** Whether `node` fails when a part of it does. */
export function decidesIn(node: SyntaxNode): boolean {
  switch (node.type) {
    case "Script":
    case "CompoundList":
      return node.commands.length === 1;
    case "Statement":
      return node.background !== true;
    case "AndOr":
      return node.operators.every((operator) => operator === "&&");
    case "Pipeline":
      return !node.prefixes.some(({ type }) => type === "Negation");
    case "Subshell":
    case "BraceGroup":
    case "Redirected":
      return true;
    default:
      return false;
  }
}
