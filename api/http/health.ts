import { health } from "../../broker/journey/health.ts";
import type { Call } from "./call.ts";
import { maySee } from "./caller.ts";

const PATIENCE_MS = 10_000;

/** `GET /v1/health`: shows the isolation achieved on the host, and the warm worlds visible to the caller. */
export function handleHealth({ broker, caller }: Call): Promise<object> {
  return health(broker, (agent) => maySee(caller, agent), PATIENCE_MS);
}
