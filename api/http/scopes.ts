import { stopping } from "../../broker/model/refusal.ts";
import { requestScopes } from "../../broker/scopes/request-scopes.ts";
import type { RequestScopesRequest } from "../../schemas/generated/types.ts";
import type { Call } from "./call.ts";
import { whenClientLeaves } from "./client-leaves.ts";

/** `POST /v1/request_scopes`: answers with a token or a pending approval. The token appears in the answer and in no log. */
export async function handleRequestScopes(call: Call<RequestScopesRequest>): Promise<object> {
  const { broker, body, request, response } = call;
  const signal = whenClientLeaves(request, response);
  return (
    (await broker.activity.during(() => requestScopes(broker, body.agent_id, body, signal))) ?? stopping()
  );
}
