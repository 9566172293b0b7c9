import { isMap, isScalar, isSeq, LineCounter, type Node, type ParsedNode, parseDocument } from "yaml";

export interface YamlPosition {
  /** Both from 1. */
  readonly line: number;
  readonly column: number;
}

export interface YamlFile {
  readonly value: unknown;
  /** Of a key or list item; of the nearest one above it when it is absent. */
  positionOf(path: readonly (string | number)[]): YamlPosition;
}

export interface YamlProblem extends YamlPosition {
  readonly message: string;
}

/** Reads one YAML document. Duplicate keys, unknown tags, several documents and alias bombs are problems. */
export function readYaml(text: string): YamlFile | { readonly problems: readonly YamlProblem[] } {
  const nul = text.indexOf("\0");
  if (nul >= 0)
    return {
      problems: [{ line: lineAt(text, nul), column: 1, message: "A policy cannot hold a NUL character" }],
    };
  try {
    return readDocument(text);
  } catch (error) {
    // Aliases that multiply end in a ReferenceError, thousands of nested brackets in a RangeError.
    const message = error instanceof Error ? error.message : String(error);
    return { problems: [{ line: 1, column: 1, message: `Cannot read it as YAML: ${message}` }] };
  }
}

function readDocument(text: string): YamlFile | { readonly problems: readonly YamlProblem[] } {
  const lines = new LineCounter();
  const document = parseDocument(text, {
    lineCounter: lines,
    uniqueKeys: true,
    prettyErrors: false,
    strict: true,
  });
  const position = (offset: number): YamlPosition => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  const wrong = [...document.errors, ...document.warnings];
  if (wrong.length > 0)
    return { problems: wrong.map((one) => ({ ...position(one.pos[0]), message: one.message })) };
  const value: unknown = document.toJS({ maxAliasCount: 100 });
  return { value, positionOf: (path) => position(offsetOf(document.contents, path)) };
}

function offsetOf(root: ParsedNode | null, path: readonly (string | number)[]): number {
  let node: unknown = root;
  let offset = root?.range[0] ?? 0;
  for (const part of path) {
    if (isMap(node)) {
      const pair = node.items.find((item) => isScalar(item.key) && String(item.key.value) === String(part));
      if (pair === undefined) return offset;
      offset = startOf(pair.key) ?? offset;
      node = pair.value;
    } else if (isSeq(node)) {
      node = node.items[Number(part)];
      if (node === undefined) return offset;
      offset = startOf(node) ?? offset;
    } else return offset;
  }
  return offset;
}

function startOf(node: unknown): number | undefined {
  return (node as Node | null | undefined)?.range?.[0];
}

function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split("\n").length;
}
