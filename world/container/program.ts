import { execFile } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { WorldUnavailable } from "../model/unavailable.ts";

/** Thrown when a container runtime refuses, is not installed or does not answer. */
export class ContainerUnavailable extends WorldUnavailable {}

/** A container runtime's command line; never passed to a shell. */
export type ContainerProgram = {
  /** The program and its global options. */
  readonly words: readonly [string, ...string[]];
  readonly environment: Readonly<Record<string, string>>;
  /** A remedy for a missing or refusing runtime. */
  readonly hint: string;
};

/** Bounds the wait for a hanging runtime, so that a world's end is not delayed for ever. */
const PATIENCE_MS = 30_000;
const REMOVAL_TRIES = 20;
const REMOVAL_RETRY_MS = 100;

/** Runs the program and returns its standard output. Throws {@link ContainerUnavailable} with the program's error text. */
export function runProgram(
  program: ContainerProgram,
  words: readonly string[],
  signal?: AbortSignal,
): Promise<string> {
  const [file, ...global] = program.words;
  return new Promise((resolve, reject) => {
    const options = {
      env: program.environment,
      cwd: "/",
      timeout: PATIENCE_MS,
      killSignal: "SIGKILL",
      ...(signal === undefined ? {} : { signal }),
    } as const;
    execFile(file, [...global, ...words], options, (error, stdout, stderr) => {
      if (error === null) return resolve(stdout);
      reject(
        new ContainerUnavailable(failureOf(program, words, error, stderr), program.hint, { cause: error }),
      );
    });
  });
}

/** Ends and removes a container; succeeds if already gone. Throws {@link ContainerUnavailable} if the container resists. */
export async function removeContainer(program: ContainerProgram, name: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await runProgram(program, ["rm", "--force", "--volumes", name]);
      return;
    } catch (error) {
      // `--rm` may remove the container at the same time, and the second removal fails.
      if ((await containersNamed(program, name)).length === 0) return;
      if (tries === REMOVAL_TRIES) throw error;
      await sleep(REMOVAL_RETRY_MS);
    }
  }
}

/** Returns the names of all containers with the label, including ended ones. */
export async function containersLabelled(
  program: ContainerProgram,
  label: string,
): Promise<readonly string[]> {
  const filter = `--filter=label=${label}`;
  return linesOf(await runProgram(program, ["ps", "--all", filter, "--format={{.Names}}"]));
}

async function containersNamed(program: ContainerProgram, name: string): Promise<readonly string[]> {
  const names = linesOf(
    await runProgram(program, ["ps", "--all", `--filter=name=${name}`, "--format={{.Names}}"]),
  );
  return names.filter((found) => found === name);
}

function failureOf(
  program: ContainerProgram,
  words: readonly string[],
  error: Error & { readonly code?: unknown; readonly killed?: boolean | undefined },
  stderr: string,
): string {
  const [file] = program.words;
  if (error.code === "ENOENT") return `'${file}' is not installed`;
  const said = linesOf(stderr)
    .filter((line) => !line.startsWith("time="))
    .join(" ");
  const ending = error.killed === true ? "did not end in time" : `ended with ${String(error.code)}`;
  return `'${program.words.join(" ")} ${words[0] ?? ""}' ${ending}: ${said === "" ? "it printed nothing" : said.slice(0, 1000)}`;
}

function linesOf(text: string): readonly string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}
