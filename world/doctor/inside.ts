/** Runs a command in a world that is made for it alone. */
import type { FsDiff, Isolation } from "../../schemas/generated/types.ts";
import type { ProjectAccess, WorldBackend, WorldSpec } from "../backend.ts";

export type Inside = {
  readonly code: number | undefined;
  readonly output: string;
  readonly isolation: Isolation;
  /** Only of a project that is an overlay. */
  readonly diff: FsDiff | undefined;
  readonly readyMs: number;
};

/** Throws `WorldUnavailable`. The world is gone when this settles. */
export async function runInside(
  backend: WorldBackend,
  project: string,
  access: ProjectAccess,
  script: string,
  signal: AbortSignal,
): Promise<Inside> {
  const begun = performance.now();
  const world = await backend.start("wld_doctor", specOf(project, access), signal);
  const readyMs = performance.now() - begun;
  const parts: Buffer[] = [];
  // A check whose time is over leaves no world behind.
  const onAbort = (): void => void world.end("the doctor's time is over");
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    const run = world.exec({
      argv: ["/bin/sh", "-c", script],
      cwd: project,
      env: { PATH: "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", LC_ALL: "C" },
      stdin: undefined,
      background: "kill",
      window: 64 * 1024,
      onOutput: (_stream, bytes) => parts.push(Buffer.from(bytes)),
      onViolation: () => undefined,
    });
    const ending = await run.ending;
    const diff = access.kind === "overlay" ? await world.fsDiff(signal) : undefined;
    const code = ending.kind === "exited" ? ending.code : undefined;
    return { code, output: Buffer.concat(parts).toString("utf8"), isolation: world.isolation, diff, readyMs };
  } finally {
    signal.removeEventListener("abort", onAbort);
    await world.end("the doctor has seen it");
  }
}

function specOf(project: string, access: ProjectAccess): WorldSpec {
  return {
    project,
    identity: "doctor",
    access,
    files: { read: ["/**"], denyRead: [], write: [`${project}/**`], denyWrite: [] },
    hidden: [],
    sealed: [],
    limits: {},
    seccomp: "enforce",
    strays: "refused",
  };
}
