/** OpenAI Agents SDK: `shellTool({ shell: shell(connect()) })`. */
import { runForModel } from "../client/for-models.ts";
import type { Substrate } from "../client/index.ts";

export type ShellAction = {
  readonly commands: readonly string[];
  readonly timeoutMs?: number | undefined;
  readonly maxOutputLength?: number | undefined;
};

type Outcome = { type: "timeout" } | { type: "exit"; exitCode: number | null };

export type ShellResult = {
  output: { stdout: string; stderr: string; outcome: Outcome }[];
  maxOutputLength?: number;
};

/** The `Shell` of the SDK's local shell tool. Commands run one after the other. */
export function shell(substrate: Substrate): { run(action: ShellAction): Promise<ShellResult> } {
  return {
    async run({ commands, timeoutMs, maxOutputLength: most }) {
      const limits = {
        ...(timeoutMs === undefined ? {} : { timeout_ms: timeoutMs }),
        ...(most === undefined ? {} : { max_output_bytes: most }),
      };
      const output: ShellResult["output"] = [];
      for (const cmd of commands) {
        const { stdout, stderr, exitCode, timedOut } = await runForModel(substrate, { cmd, ...limits });
        const outcome: Outcome = timedOut ? { type: "timeout" } : { type: "exit", exitCode };
        output.push({ stdout, stderr, outcome });
      }
      return { output, ...(most === undefined ? {} : { maxOutputLength: most }) };
    },
  };
}
