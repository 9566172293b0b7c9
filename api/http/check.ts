import { checkLines } from "../../broker/journey/check-lines.ts";
import { check } from "../../broker/journey/check.ts";
import { isRefusal } from "../../broker/model/refusal.ts";
import type { ExecuteRequest } from "../../schemas/generated/types.ts";
import type { Call } from "./call.ts";

/** `POST /v1/check`: answers every verdict with 200; with `format: text` also the lines that a terminal shows. */
export function handleCheck({ broker, caller, body }: Call<ExecuteRequest>): object {
  const reply = check(broker, body.agent_id, body, caller.kind === "operator" ? "person" : "agent");
  return isRefusal(reply) || body.format !== "text" ? reply : { ...reply, lines: checkLines(reply) };
}
