import type { DoctorOrder, HostCheck } from "./face.ts";
import type { WorldBackend } from "../model/world.ts";
import { cgroupCheck } from "./cgroups.ts";
import { basicChecks, limitChecks } from "./host.ts";
import { leftOverChecks } from "./left-overs.ts";
import { namespaceChecks } from "./namespaces.ts";
import { networkChecks } from "./networks.ts";
import { overlayChecks } from "./overlays.ts";
import { seccompChecks } from "./seccomp.ts";
import { type Inits, Trials } from "./trials.ts";
import { userNamespaceCheck } from "./user-namespaces.ts";
import { wholeWorldCheck } from "./whole-world.ts";

/**
 * Returns the checks for worlds of Linux namespaces, in the order to run them: prerequisites first, left-overs last. Only one
 * trial runs before the first check: whether a user namespace is needed.
 */
export async function linuxChecks(
  inits: Inits,
  backend: WorldBackend,
  order: DoctorOrder,
  signal: AbortSignal,
): Promise<readonly HostCheck[]> {
  const trials = new Trials(inits);
  return [
    ...basicChecks(trials),
    await userNamespaceCheck(trials, signal),
    ...namespaceChecks(trials),
    ...overlayChecks(trials, backend, order.overlay, order.required.has("overlay")),
    ...seccompChecks(trials, backend),
    ...networkChecks(trials, backend, order.required.has("net")),
    cgroupCheck(order.required.has("cgroup"), inits.uid),
    ...limitChecks(trials),
    wholeWorldCheck(backend, order.required),
    ...leftOverChecks(order, inits.uid),
  ];
}
