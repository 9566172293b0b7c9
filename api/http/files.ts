import { files } from "../../broker/journey/files.ts";
import { isRefusal } from "../../broker/model/refusal.ts";
import { BY_PERSON, IN_WORLD } from "../../broker/project/request.ts";
import type { FilesRequest } from "../../schemas/generated/types.ts";
import type { Call } from "./call.ts";
import { whenClientLeaves } from "./client-leaves.ts";

/** `POST /v1/files`: carries out a file operation in the session's world. */
export async function handleFiles(call: Call<FilesRequest>): Promise<object> {
  const { broker, caller, log, body, request, response } = call;
  const how = {
    ...(caller.kind === "operator" ? BY_PERSON : IN_WORLD),
    call: String(response.getHeader("x-request-id")),
  };
  const reply = await files(broker, body, whenClientLeaves(request, response), how);
  if (isRefusal(reply) && reply.code === "internal")
    log.error({ refusal: reply }, "A file operation failed because of a bug");
  return reply;
}
