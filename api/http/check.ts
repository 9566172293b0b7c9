import { checkFiles } from "../../broker/journey/check-files.ts";
import { checkFilesLines, checkLines } from "../../broker/journey/check-lines.ts";
import { check } from "../../broker/journey/check.ts";
import { recordDenial } from "../../broker/journey/record-denial.ts";
import { isRefusal } from "../../broker/model/refusal.ts";
import type { CheckFilesRequest, ExecuteRequest } from "../../schemas/generated/types.ts";
import { validateCheckFilesRequest } from "../../schemas/generated/validators/check-files-request.js";
import { validateExecuteRequest } from "../../schemas/generated/validators/execute-request.js";
import { readJson } from "./body.ts";
import type { Call, Read } from "./call.ts";
import { agentDocument, isObject } from "./valid-request.ts";

type CheckRequest = ExecuteRequest | CheckFilesRequest;

/** Reads a body about a command, or about files. */
export const readCheck: Read<CheckRequest> = async (request, context) => {
  const sent = await readJson(request, context);
  const { caller } = context;
  if (isRefusal(sent)) return sent;
  const { document } = sent;
  return isObject(document) && (document["files"] ?? null) !== null
    ? agentDocument(document, caller, validateCheckFilesRequest)
    : agentDocument(document, caller, validateExecuteRequest);
};

/** `POST /v1/check`: answers every verdict with 200; with `format: text` also the lines that a terminal shows. */
export function handleCheck({ broker, caller, body }: Call<CheckRequest>): object {
  const [reply, lines] =
    "files" in body
      ? ([checkFiles(broker, body.agent_id, body), checkFilesLines] as const)
      : ([
          check(broker, body.agent_id, body, caller.kind === "operator" ? "person" : "agent"),
          checkLines,
        ] as const);
  if (!isRefusal(reply)) recordDenial(broker, body.agent_id, body, reply);
  return isRefusal(reply) || body.format !== "text" ? reply : { ...reply, lines: lines(reply) };
}
