/** Mastra: `new Workspace({ sandbox: sandbox(connect()) })`. */
import { randomUUID } from "node:crypto";
import { ABOUT, runForModel } from "../client/for-models.ts";
import type { Substrate } from "../client/index.ts";

export type CommandOptions = {
  readonly timeout?: number;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /** Called once, after the command's end. */
  readonly onStdout?: (text: string) => void;
  readonly onStderr?: (text: string) => void;
  readonly abortSignal?: AbortSignal;
  readonly maxRetainedBytes?: number;
};

export type CommandResult = {
  success: boolean;
  exitCode: number;
  stdout: string;
  stderr: string;
  executionTimeMs: number;
  timedOut: boolean;
  command: string;
  args: string[];
};

/** Longest output that a reply holds. */
const MOST_BYTES = 16 * 1024 * 1024;

/** A `WorkspaceSandbox`. Worlds start by themselves, so it is always running and nothing is to be stopped. */
export class SubstrateSandbox {
  readonly id: string = `substrate-${randomUUID()}`;
  readonly name = "Substrate";
  readonly provider = "substrate";
  readonly status = "running";
  readonly #substrate: Substrate;

  constructor(substrate: Substrate) {
    this.#substrate = substrate;
  }

  getInstructions(): string {
    return ABOUT;
  }

  async snapshot(): Promise<void> {}

  async executeCommand(
    command: string,
    args: string[] = [],
    { timeout, env, cwd, onStdout, onStderr, abortSignal, maxRetainedBytes }: CommandOptions = {},
  ): Promise<CommandResult> {
    const began = performance.now();
    const most = Math.min(maxRetainedBytes ?? MOST_BYTES, MOST_BYTES);
    const request = {
      ...(args.length === 0 ? { cmd: command } : { argv: [command, ...args] }),
      ...(timeout === undefined ? {} : { timeout_ms: timeout }),
      ...(cwd === undefined ? {} : { cwd }),
      ...(env === undefined ? {} : { env: setOnly(env) }),
      max_output_bytes: most,
    };
    const { exitCode, stdout, stderr, timedOut } = await runForModel(this.#substrate, request, {
      signal: abortSignal,
    });
    if (stdout !== "") onStdout?.(stdout);
    if (stderr !== "") onStderr?.(stderr);
    const executionTimeMs = performance.now() - began;
    return { success: exitCode === 0, exitCode, stdout, stderr, executionTimeMs, timedOut, command, args };
  }
}

export function sandbox(substrate: Substrate): SubstrateSandbox {
  return new SubstrateSandbox(substrate);
}

function setOnly(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}
