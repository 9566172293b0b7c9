/** LangChain: `tool(...bash(connect()))`, with `tool` of `@langchain/core/tools`. */
import { ABOUT, runForModel } from "../client/for-models.ts";
import type { Substrate } from "../client/index.ts";

const SCHEMA = {
  type: "object" as const,
  properties: { command: { type: "string" as const, description: "The shell command" } },
  required: ["command"],
};

export type BashInput = { command: string };

/** The arguments of LangChain's `tool()`: a function that answers with the outputs as text, and the tool's description. */
export function bash(
  substrate: Substrate,
): [
  func: (input: unknown, config?: { readonly signal?: AbortSignal }) => Promise<string>,
  fields: { name: string; description: string; schema: typeof SCHEMA },
] {
  return [
    async (input, { signal } = {}) => {
      const { command } = input as BashInput;
      const { exitCode, stdout, stderr } = await runForModel(
        substrate,
        { cmd: command, outputs: "together" },
        { signal },
      );
      return `${stdout}${stderr}${exitCode === 0 ? "" : `[exit code ${exitCode}]\n`}`;
    },
    { name: "bash", description: ABOUT, schema: SCHEMA },
  ];
}
