import type { Request } from "express";
import { reload, showPolicyInForce } from "../../broker/journey/reload.ts";
import { isRefusal } from "../../broker/model/refusal.ts";
import type { Call } from "./call.ts";

/** `POST /v1/policy/reload`: rereads the policies. Answers 200 with the policies in force, even if a file has errors. */
export function handleReload({ broker, log }: Call<object>): object {
  const reply = reload(broker);
  log.info({ policies: reply.policies.length }, "An operator reloaded the policies");
  return reply;
}

/** `GET /v1/policy/:name`: shows the policy in force, even if the file has errors. */
export function handlePolicy({ broker, request }: Call<undefined, Request>): object {
  const reply = showPolicyInForce(broker, String(request.params["name"]));
  return isRefusal(reply) ? { ...reply, code: "not_found" } : reply;
}
