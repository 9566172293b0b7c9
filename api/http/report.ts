import { report } from "../../broker/journey/report.ts";
import { closeUnanswered } from "../../broker/journey/report.ts";
import { isRefusal } from "../../broker/model/refusal.ts";
import type { ReportRequest } from "../../schemas/generated/types.ts";
import type { Call } from "./call.ts";
import { whenClientLeaves } from "./client-leaves.ts";

/** `POST /v1/report`: a shim asks before starting a program, or reports the program's end. */
export async function handleReport(call: Call<ReportRequest>): Promise<object> {
  const { broker, unread, body, request, response } = call;
  const gone = whenClientLeaves(request, response);
  const asking = { gone, waits: () => response.writeProcessing() };
  const reply = await report(broker, body.agent_id, body, asking);
  if (isRefusal(reply)) return reply;
  const { span_id: span } = reply;
  if (span !== undefined && body.argv !== undefined)
    unread.watch(request.socket, gone, () => closeUnanswered(broker, body.agent_id, span));
  return reply;
}
