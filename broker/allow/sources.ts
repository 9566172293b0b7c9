import type { CompiledPolicy } from "../policy/index.ts";
import { readYaml } from "../policy/yaml-file.ts";

/** Where a path of a policy's document stands: `default.yaml:31`; of a list that the file does not have, the file alone. */
export type Sources = (path: readonly (string | number)[]) => string;

/** `text` is the policy's file, which loads. */
export function sourcesIn(text: string, { source, document }: CompiledPolicy): Sources {
  const yaml = readYaml(text);
  return (path) => {
    if ("problems" in yaml || valueAt(document, path) === undefined) return source;
    return `${source}:${yaml.positionOf(path).line}`;
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
