import { Complaint } from "./terminal/terminal.ts";

/** Every backend that a host may have, in the order in which they are tried. podman's own OCI runtime may refuse what runc does not. */
const IN_ORDER = ["linux", "podman", "podman:runc", "docker"] as const;

export type BackendName = (typeof IN_ORDER)[number];

/** What SUBSTRATE_BACKEND may say, and what is then tried. */
const FORCED: Readonly<Record<string, readonly [BackendName, ...BackendName[]]>> = {
  linux: ["linux"],
  podman: ["podman", "podman:runc"],
  docker: ["docker"],
};

/** The backends to try. Throws {@link Complaint} for a word that names none. */
export function backendNames(wanted: string | undefined): readonly BackendName[] {
  if (wanted === undefined || wanted === "") return IN_ORDER;
  const names = Object.hasOwn(FORCED, wanted) ? FORCED[wanted] : undefined;
  if (names === undefined)
    throw new Complaint(
      `SUBSTRATE_BACKEND: one of ${Object.keys(FORCED).join(", ")} is wanted, received '${wanted}'`,
    );
  return names;
}
