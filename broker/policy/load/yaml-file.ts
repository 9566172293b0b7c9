import { type CollectionTag, type Document, isMap, isScalar, isSeq } from "yaml";
import { yamlDocument, yamlWords } from "../../../schemas/yaml-document.ts";

export interface YamlPosition {
  /** Line and column count from 1. */
  readonly line: number;
  readonly column: number;
}

export interface YamlFile {
  readonly value: unknown;
  /** Lists written `!only [..]`: keys and positions, joined by dots. */
  readonly only: ReadonlySet<string>;
  /** Position of a key or list item; an absent part has the position of the nearest part above. */
  positionOf(path: readonly (string | number)[]): YamlPosition;
}

export interface YamlProblem extends YamlPosition {
  readonly message: string;
}

/** Reads a single YAML document. Duplicate keys, unknown tags, several documents and alias bombs are problems. */
export function readYaml(text: string): YamlFile | { readonly problems: readonly YamlProblem[] } {
  const nul = text.indexOf("\0");
  if (nul >= 0) {
    const line = text.slice(0, nul).split("\n").length;
    return { problems: [{ line, column: 1, message: "A policy cannot hold a NUL character" }] };
  }
  try {
    return readDocument(text);
  } catch (error) {
    return {
      problems: [
        {
          line: 1,
          column: 1,
          message: `The file is not valid YAML: ${error instanceof Error ? error.message : String(error)}`,
        },
      ],
    };
  }
}

/** A list that replaces the base policy's list (`extends`). */
export const ONLY: CollectionTag = { tag: "!only", collection: "seq", resolve: (list) => list };

function readDocument(text: string): YamlFile | { readonly problems: readonly YamlProblem[] } {
  const { document, lines } = yamlDocument(text, [ONLY]);
  const position = (offset: number): YamlPosition => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  const wrong = [...document.errors, ...document.warnings];
  if (wrong.length > 0)
    return { problems: wrong.map((one) => ({ ...position(one.pos[0]), message: yamlWords(one) })) };
  return {
    value: document.toJS({ maxAliasCount: 100 }),
    only: new Set(markedLists(document.contents, [])),
    positionOf: (path) => position(offsetOf(document, path)),
  };
}

function markedLists(node: unknown, above: readonly (string | number)[]): readonly string[] {
  if (isSeq(node)) {
    const inside = node.items.flatMap((item, index) => markedLists(item, [...above, index]));
    return node.tag === ONLY.tag ? [above.join("."), ...inside] : inside;
  }
  if (!isMap(node)) return [];
  return node.items.flatMap(({ key, value }) =>
    isScalar(key) ? markedLists(value, [...above, String(key.value)]) : [],
  );
}

/** Returns the offset of a key or item, or of the nearest existing part above. */
function offsetOf({ contents }: Document, path: readonly (string | number)[]): number {
  let offset = startOf(contents) ?? 0;
  let inside: unknown = contents;
  for (const name of path) {
    if (isSeq(inside)) {
      inside = inside.items[Number(name)];
      offset = startOf(inside) ?? offset;
    } else if (isMap(inside)) {
      const pair = inside.items.find(({ key }) => isScalar(key) && String(key.value) === String(name));
      offset = startOf(pair?.key) ?? offset;
      inside = pair?.value;
    } else return offset;
  }
  return offset;
}

function startOf(node: unknown): number | undefined {
  return (node as { range?: readonly number[] | null } | null | undefined)?.range?.[0];
}
