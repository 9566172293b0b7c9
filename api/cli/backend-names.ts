import { Complaint } from "./terminal/terminal.ts";

/** All backends in the order of trial. runc may work where podman's default OCI runtime refuses. */
const IN_ORDER = ["linux", "podman", "podman:runc", "docker"] as const;

/** Of hosts that are not Linux. */
const ELSEWHERE = ["lima"] as const;

/** `agent`: worlds of a world agent, which only SUBSTRATE_BACKEND chooses. */
export type BackendName = (typeof IN_ORDER)[number] | (typeof ELSEWHERE)[number] | "agent";

/** Values of SUBSTRATE_BACKEND, and the backends tried for each. */
const FORCED: Readonly<Record<string, readonly [BackendName, ...BackendName[]]>> = {
  linux: ["linux"],
  podman: ["podman", "podman:runc"],
  docker: ["docker"],
  lima: ["lima"],
  agent: ["agent"],
};

/** Lists the backends to try. Throws {@link Complaint} for an unknown value. */
export function backendNames(wanted: string | undefined, platform: NodeJS.Platform): readonly BackendName[] {
  if (wanted === undefined || wanted === "") return platform === "linux" ? IN_ORDER : ELSEWHERE;
  const names = Object.hasOwn(FORCED, wanted) ? FORCED[wanted] : undefined;
  if (names === undefined)
    throw new Complaint(
      `Cannot use '${wanted}' as SUBSTRATE_BACKEND: it must be one of ${Object.keys(FORCED).join(", ")}`,
    );
  return names;
}
