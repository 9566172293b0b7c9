/** Words for what is wrong with a YAML file, in place of the parser's own where those help nobody. */
import type { YAMLError } from "yaml";

const TOO_DEEP =
  "Lists or mappings are nested too deeply to be read: a file that people can review has a few levels";

const WORDS: Partial<Record<YAMLError["code"], string>> = {
  MULTIPLE_DOCS: "The file may have only one YAML document; received another one after '---'",
  RESOURCE_EXHAUSTION: TOO_DEEP,
};

/** Returns the problems to report: nesting that is too deep makes every other problem up. */
export function yamlProblems<Problem extends YAMLError>(problems: readonly Problem[]): readonly Problem[] {
  const deep = problems.find(({ code }) => code === "RESOURCE_EXHAUSTION");
  return deep === undefined ? problems : [deep];
}

export function yamlWords({ code, message }: YAMLError): string {
  return WORDS[code] ?? message.split("\n")[0] ?? message;
}

/** Words for an error thrown while a document becomes values: multiplied aliases, or nesting that is too deep. */
export function thrownWords(error: unknown): string {
  if (error instanceof RangeError) return TOO_DEEP;
  return `The file is not valid YAML: ${error instanceof Error ? error.message : String(error)}`;
}
