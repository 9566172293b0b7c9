/** Runs a command in a temporary world. */
import type { FsDiff, Isolation } from "../../schemas/generated/types.ts";
import type { NetworkRules } from "../model/network.ts";
import type { ProjectAccess, World, WorldBackend, WorldSpec } from "../model/world.ts";

export type Inside = {
  readonly code: number | undefined;
  readonly output: string;
  readonly isolation: Isolation;
  /** Only for an overlay project. */
  readonly diff: FsDiff | undefined;
  readonly readyMs: number;
};

/** Throws `WorldUnavailable`. The world is gone when the promise settles. */
export async function runInside(
  backend: WorldBackend,
  project: string,
  access: ProjectAccess,
  script: string,
  signal: AbortSignal,
): Promise<Inside> {
  const begun = performance.now();
  const world = await backend.start("wld_doctor", doctorSpec(project, access), signal);
  const readyMs = performance.now() - begun;
  // Ends the world when the check's time is over.
  const onAbort = (): void => void world.end("the doctor's time limit is over");
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    const { code, output } = await runIn(world, ["/bin/sh", "-c", script]);
    const diff = access.kind === "overlay" ? await world.fsDiff(signal) : undefined;
    return { code, output, isolation: world.isolation, diff, readyMs };
  } finally {
    signal.removeEventListener("abort", onAbort);
    await world.end("the doctor has seen it");
  }
}

/** Runs one program to its end in the project of a world; `code` is undefined unless the program exited. */
export async function runIn(
  world: World,
  argv: readonly string[],
): Promise<{ readonly code: number | undefined; readonly output: string }> {
  const parts: Buffer[] = [];
  const run = world.exec({
    argv,
    cwd: world.spec.project,
    env: { PATH: "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", LC_ALL: "C" },
    stdin: undefined,
    background: "kill",
    window: 64 * 1024,
    onOutput: (_stream, bytes) => parts.push(Buffer.from(bytes)),
    onViolation: () => undefined,
  });
  const ending = await run.ending;
  const code = ending.kind === "exited" ? ending.code : undefined;
  return { code, output: Buffer.concat(parts).toString("utf8") };
}

/** Returns the spec of a world that may write only its project. */
export function doctorSpec(
  project: string,
  access: ProjectAccess,
  network: NetworkRules = { ports: [], ranges: [] },
): WorldSpec {
  return {
    project,
    identity: "doctor",
    access,
    files: { read: ["/**"], denyRead: [], write: [`${project}/**`], denyWrite: [], seal: [] },
    hidden: [],
    sealed: [],
    limits: {},
    seccomp: "enforce",
    network,
  };
}
