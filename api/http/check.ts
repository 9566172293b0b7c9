import { check } from "../../broker/journey/check.ts";
import type { ExecuteRequest } from "../../schemas/generated/types.ts";
import type { Call } from "./call.ts";

/** `POST /v1/check`: answers every verdict with 200. */
export function handleCheck({ broker, caller, body }: Call<ExecuteRequest>): object {
  return check(broker, body.agent_id, body, caller.kind === "operator" ? "person" : "agent");
}
