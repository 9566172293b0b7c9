import type { CompiledPolicy } from "../policy/index.ts";

/** Where a path of a policy's document stands: `default.yaml:31`; of a list that no file has, the policy's file alone. */
export type Sources = (path: readonly (string | number)[]) => string;

export function sourcesOf({ source, document, at }: CompiledPolicy): Sources {
  return (path) => {
    if (valueAt(document, path) === undefined) return source;
    const { file, line } = at(path);
    return `${file}:${line}`;
  };
}

function valueAt(document: object, path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>(
    (value, key) =>
      typeof value === "object" && value !== null
        ? (value as Record<string | number, unknown>)[key]
        : undefined,
    document,
  );
}
