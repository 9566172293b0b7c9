import { health } from "../../broker/journey/health.ts";
import type { Call } from "./call.ts";
import { maySee } from "./caller.ts";

const PATIENCE_MS = 10_000;

/** `GET /v1/health`: what worlds on this host achieve, and the warm ones that the caller may see. */
export function handleHealth({ broker, caller }: Call): Promise<object> {
  return health(broker, (agent) => maySee(caller, agent), AbortSignal.timeout(PATIENCE_MS));
}
