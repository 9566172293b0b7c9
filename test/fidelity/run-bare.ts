/** A row outside every world: what somebody gets who runs the command in a terminal. */
import { constants } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { type Actor, spawnAs } from "../support/users/users.ts";

export type Command = {
  readonly cwd: string;
  readonly cmd: string;
  readonly shell: "sh" | "bash";
  readonly stdin: string | undefined;
  readonly env: Readonly<Record<string, string>>;
};

/** What a bare run begins with, beside its user. */
export type BareOptions = { readonly within?: readonly string[] };

export type Ended = { readonly exit: number | null; readonly stdout: string; readonly stderr: string };

/** A run that goes on, until it ends by itself or is ended. */
export type Running = { readonly ended: Promise<Ended>; readonly end: () => void };

/** As long as the broker waits for outputs that somebody else still holds (`/v1/execute`). */
const DRAIN_MS = 100;

/** In a session of its own, as every command of a world: no terminal, and a group that can be ended. */
export function runBare(
  actor: Actor,
  { cwd, cmd, shell, stdin, env }: Command,
  { within = [] }: BareOptions = {},
): Running {
  const child = spawnAs(actor, ["setsid", `/bin/${shell}`, "-c", cmd], {
    within,
    cwd,
    env,
    stdio: [stdin === undefined ? "ignore" : "pipe", "pipe", "pipe"],
  });
  const parts = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  child.stdout?.on("data", (bytes: Buffer) => parts.stdout.push(bytes));
  child.stderr?.on("data", (bytes: Buffer) => parts.stderr.push(bytes));
  // A program that ends without reading its input is no failure.
  child.stdin?.on("error", () => undefined).end(stdin);
  const closed = new Promise((resolve) => child.once("close", resolve));
  const exited = new Promise<number>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code, signal) => resolve(code ?? 128 + constants.signals[signal ?? "SIGKILL"]));
  });
  let byHand = false;
  const group = (signal: NodeJS.Signals): void => {
    if (child.pid !== undefined) endGroup(child.pid, signal);
  };
  const untilEnded = async (): Promise<Ended> => {
    const exit = await exited;
    await Promise.race([closed, sleep(DRAIN_MS)]);
    // As with `background: kill`.
    group("SIGKILL");
    if (byHand) return { exit: null, stdout: "", stderr: "" };
    const text = (chunks: readonly Buffer[]): string => Buffer.concat(chunks).toString("latin1");
    return { exit, stdout: text(parts.stdout), stderr: text(parts.stderr) };
  };
  const end = (): void => {
    byHand = true;
    group("SIGINT");
  };
  return { ended: untilEnded(), end };
}

function endGroup(leader: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-leader, signal);
  } catch {
    // The group is gone, ignoring: ESRCH.
  }
}
