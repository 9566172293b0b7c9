import { forEachChild, type ParameterExpansionPart, parse, type SyntaxNode } from "unbash";
import type { Inner } from "./inner.ts";

/** More than a person writes by hand; a place with more substitutions is opaque all the same. */
const MOST_READ = 8;
const SUBSTITUTIONS: ReadonlySet<SyntaxNode["type"]> = new Set<SyntaxNode["type"]>([
  "CommandExpansion",
  "ArithmeticCommandExpansion",
  "ProcessSubstitution",
]);

interface Span {
  readonly pos: number;
  readonly end: number;
  /** Why the parser misses substitutions in the span, for a cause other than quotes. */
  readonly why?: string;
}

/**
 * Returns the commands that run inside a here-document or arithmetic although the parser sees quoted text: quotes do not quote
 * there, not even inside `${…}`. A second, raw reading: each `$(` and backquote neither escaped nor inside a parsed substitution.
 * Where quotes do quote after all (`${x#'$(y)'}`, in some shells), the reading finds too many commands, never too few.
 *
 * @param text the text that the node's offsets refer to.
 */
export function hiddenSubstitutions(node: SyntaxNode, text: string): Inner[] {
  if (node.type === "ParameterExpansion")
    return [...complaint(node), ...hiddenBy(node, text), ...unseenIn(node, text)];
  const isArithmetic = node.type === "ArithmeticExpansion" || node.type === "ArithmeticCommand";
  return [
    ...(isArithmetic ? lopsided(text.slice(node.pos, node.end)) : []),
    ...hiddenBy(node, text),
    ...unseenIn(node, text),
  ];
}

/** `"${x:?<(y)}"`: bash reads the message as a separate word, whatever text surrounds the expansion. */
function complaint({ operation }: ParameterExpansionPart): Inner[] {
  if (operation?.type !== "Default" || !operation.operator.endsWith("?")) return [];
  const { text } = operation.operand;
  return /['"\\]|[<>]\(/.test(text) && /[$<>]\(|`/.test(text)
    ? [
        {
          kind: "opaque",
          reason: `'${text.slice(0, 40)}' may be run: quotes have no effect in the message behind '?'`,
        },
        { kind: "script", text: `: ${text}`, shell: "bash" },
      ]
    : [];
}

/** `$(( ${x/$(case a in a) y;; esac)} ))`: bash counts the brackets and runs uneven arithmetic as commands. */
function lopsided(written: string): Inner[] {
  let depth = 0;
  for (const bracket of written.replaceAll(/'[^']*'|"(?:\\.|[^"\\])*"|\\./gs, "").match(/[()]/g) ?? [])
    if ((depth += bracket === "(" ? 1 : -1) < 0) break;
  if (depth === 0) return [];
  return [
    { kind: "opaque", reason: `Shells may read '${written.slice(0, 40)}' as arithmetic or as commands` },
  ];
}

/** `${a[${x/$(y)/}$(z)*}]}`, `a[${a[1+$(x)}]=1`: uneven brackets end the index where the parser sees no end. */
function unseenIn(node: SyntaxNode, text: string): Inner[] {
  const index = node.type === "ParameterExpansion" || node.type === "Assignment" ? node.index : undefined;
  return index === undefined
    ? []
    : hiddenIn({ ...index, why: "cannot tell where the array index ends" }, text, knownEnds(node));
}

function hiddenBy(node: SyntaxNode, text: string): Inner[] {
  const spans = unquotedSpans(node).filter(({ pos, end, why }) => {
    const body = text.slice(pos, end);
    return (why !== undefined || /['"]/.test(body)) && /\$\(|`/.test(body);
  });
  if (spans.length === 0) return [];
  const known = knownEnds(node);
  const hidden = spans.flatMap((span) => hiddenIn(span, text, known));
  return node.type === "HereDocBody" ? [...hidden, ...twiceQuoted(text, known)] : hidden;
}

/** `` `x \"a\"` ``: in a here-document dash removes the backslashes, bash keeps them. */
function twiceQuoted(text: string, known: ReadonlyMap<number, number>): Inner[] {
  return [...known].flatMap(([start, end]): Inner[] => {
    const written = text.slice(start, end);
    if (!written.startsWith("`") || !written.includes('\\"')) return [];
    return [
      { kind: "opaque", reason: `Shells disagree about the escaped quotes in '${written.slice(0, 40)}'` },
      { kind: "script", text: `: ${written.replaceAll('\\"', '"')}`, shell: "sh" },
    ];
  });
}

function unquotedSpans(node: SyntaxNode): readonly Span[] {
  switch (node.type) {
    case "HereDocBody":
      return node.parts === undefined ? [] : [node];
    case "ParameterExpansion":
      return [node.index, node.operation?.type === "Slice" ? node.operation : undefined].filter(
        (span) => span !== undefined,
      );
    case "Assignment":
      return [
        ...(node.index === undefined ? [] : [node.index]),
        // `a=($(x))y`: the parser reads a single word without parts.
        ...(node.value.type === "Word" && node.value.text.startsWith("(")
          ? [{ pos: node.value.pos, end: node.value.end, why: "text directly follows the ')' of the array" }]
          : []),
      ];
    case "ArithmeticFor":
      return [{ pos: node.pos, end: node.body.pos }];
    case "ArithmeticExpansion":
    case "ArithmeticCommand":
      return [node];
    default:
      return [];
  }
}

function hiddenIn(
  { pos, end, why = "quotes have no effect at this place" }: Span,
  text: string,
  known: ReadonlyMap<number, number>,
): Inner[] {
  const starts = hiddenStarts(text, pos, end, known);
  const [first] = starts;
  if (first === undefined) return [];
  const shown = text.slice(first, Math.min(end, first + 40)).split("\n")[0] ?? "";
  const scripts = starts
    .slice(0, MOST_READ)
    .map((start): Inner => ({ kind: "script", text: substitutionAt(text.slice(start, end)), shell: "sh" }));
  return [{ kind: "opaque", reason: `'${shown}' may be run: ${why}` }, ...scripts];
}

/** Returns `: $(x)` without the text behind the substitution; the whole text if the substitution has no end. */
function substitutionAt(text: string): string {
  const nodes: SyntaxNode[] = [parse(`: ${text}`)];
  for (let one = nodes.pop(); one !== undefined; one = nodes.pop()) {
    if (one.type === "CommandExpansion" && one.pos === 2) return `: ${one.text}`;
    forEachChild(one, (child) => void nodes.push(child));
  }
  return `: ${text}`;
}

/** Returns the end of each parsed substitution by its beginning. */
function knownEnds(node: SyntaxNode): ReadonlyMap<number, number> {
  const ends = new Map<number, number>();
  const nodes: SyntaxNode[] = [node];
  for (let one = nodes.pop(); one !== undefined; one = nodes.pop()) {
    if (SUBSTITUTIONS.has(one.type)) ends.set(one.pos, one.end);
    // Nested arithmetic is searched separately; the node itself begins with `$(` too.
    else if (one.type === "ArithmeticExpansion") ends.set(one.pos, one === node ? one.pos + 3 : one.end);
    if (!ends.has(one.pos) || one === node) forEachChild(one, (child) => void nodes.push(child));
  }
  return ends;
}

function hiddenStarts(text: string, from: number, to: number, known: ReadonlyMap<number, number>): number[] {
  const starts: number[] = [];
  for (let at = from; at < to; at += 1) {
    const char = text[at];
    if (char === "\\") at += 1;
    else if (char === "`" || (char === "$" && text[at + 1] === "(")) {
      const end = known.get(at);
      if (end === undefined) starts.push(at);
      at = end === undefined ? at : end - 1;
    }
  }
  return starts;
}
