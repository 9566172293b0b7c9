/** One file operation of an agent's own tool: judged by the `fs` lists, then carried out in the session's world as a command is. */
import { isRefusal, type Refusal, refusal } from "../model/refusal.ts";
import type { ExecuteReply, FilesReply, FilesRequest } from "../../schemas/generated/types.ts";
import { decodeFileAnswer, encodeFileOrder, FILE_WORDS, type FileAnswer } from "../../world/backend.ts";
import type { Broker } from "../broker.ts";
import { type FileCall, fileCall } from "../files/file-call.ts";
import { type Denial, fileFault } from "../files/file-faults.ts";
import { fileReply } from "../files/file-reply.ts";
import type { Job } from "../model/job.ts";
import { asksForAll, keyRule } from "../policy/index.ts";
import type { How } from "../project/request.ts";
import { fileRule } from "./check-files.ts";
import { execute } from "./execute.ts";

/** A search of a large tree on a slow disk; a change takes milliseconds. */
const TIMEOUT_MS = 30_000;

/** More than `substrate-init file` ever answers (ANSWER_MAX in world/native/files/order.h). */
const MAX_ANSWER = 5 * 1024 * 1024;

/** Carries out an operation. `how`: as for a command of this caller. */
export async function files(
  broker: Broker,
  request: FilesRequest,
  signal: AbortSignal,
  how: How,
): Promise<FilesReply | Refusal> {
  const call = fileCall(request);
  if (isRefusal(call)) return call;
  const { agent_id: agent, cwd, profile, session_id, session_key, parent_span, scope_token } = request;
  const { umask, approval_wait_ms } = request;
  const ran = await execute(
    broker,
    agent,
    {
      agent_id: agent,
      argv: [...call.words],
      ...given({ cwd, profile, session_id, session_key, parent_span, scope_token, umask }),
      ...(approval_wait_ms === undefined ? {} : { approval_wait_ms }),
      stdin_b64: encodeFileOrder(call.order).toString("base64"),
      timeout_ms: TIMEOUT_MS,
      max_output_bytes: MAX_ANSWER,
    },
    signal,
    {
      ...how,
      argvOf: () => [broker.around.fileProgram, ...FILE_WORDS],
      decide: (asked) => decisionOn(broker, asked, call),
    },
  );
  if (ran.kind === "refused") return ran.error;
  ran.sent?.();
  return replyOf(broker, request, ran.reply);
}

/** Drops absent fields, which a command's request may not have as undefined. */
function given<Fields extends Record<string, string | undefined>>(
  fields: Fields,
): { [Name in keyof Fields]?: string } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [Name in keyof Fields]?: string;
  };
}

type Asked = Parameters<NonNullable<How["decide"]>>[0];

/** The lists name the rule; what they miss, a link made in the world or a race, the world's mounts refuse. */
function decisionOn(
  broker: Broker,
  asked: Asked,
  { files: wanted, words }: FileCall,
): Job["decision"] | Refusal {
  const found = fileRule(broker, asked, wanted);
  if (isRefusal(found)) return found;
  const { policies, id } = asked.effective;
  const mode = policies.some((policy) => policy.mode === "enforce") ? "enforce" : "observe";
  const changes = wanted.some(({ access }) => access === "write");
  const asks = found.rule === null && changes && mode === "enforce" ? askingRule(policies, words) : undefined;
  return {
    verdict: asks === undefined ? (found.rule === null ? "allow" : "deny") : "ask",
    mode,
    rule: asks ?? found.rule,
    warnings: [],
    approved: "allow",
    isolatedBy: [],
    policyId: id,
    builtins: [],
  };
}

/** A policy by which a person answers for each command: a file that an approved one reads is as good as a command. */
function askingRule(
  policies: Asked["effective"]["policies"],
  words: readonly string[],
): Job["decision"]["rule"] | undefined {
  const asking = policies.find((policy) => policy.document.mode === "enforce" && asksForAll(policy));
  const why = "approval.require is true, and approval.auto_approve names no change of a file";
  return asking === undefined ? undefined : keyRule(asking, "require", "require: true", words.join(" "), why);
}

function replyOf(broker: Broker, request: FilesRequest, reply: ExecuteReply): FilesReply | Refusal {
  const { span_id, session_id, notices } = reply;
  if (reply.exit !== 0 && reply.exit !== FAULT) return { ...unfinished(reply), span_id };
  const answer = answerIn(reply);
  if (answer === undefined) return { ...unfinished(reply), span_id };
  if (answer.word === "ok")
    return { span_id, session_id, op: request.op, ...fileReply(request, answer), notices };
  const refused = fileFault(answer, reply.policy_id, (path) => denialOf(broker, request, reply, path));
  return { ...refused, span_id };
}

/** Undefined for bytes that are no answer: commands of the session run as the same user, and can disturb the program. */
function answerIn({ stdout_b64: bytes }: ExecuteReply): FileAnswer | undefined {
  try {
    return decodeFileAnswer(Buffer.from(bytes, "base64"));
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** Exit code of `substrate-init file` for an operation without effect; the answer says why. */
const FAULT = 2;

const READS: readonly FilesRequest["op"][] = ["read", "glob", "grep"];

/** The rule against a path as the kernel found it, else the sentence of the world's own line. */
function denialOf(broker: Broker, request: FilesRequest, { notices }: ExecuteReply, path: string): Denial {
  const access = READS.includes(request.op) ? "read" : "write";
  const found = fileRule(broker, request, [{ path, access }]);
  const message = notices.find(({ kind }) => kind === "denied")?.message;
  return { rule: isRefusal(found) ? null : found.rule, message };
}

function unfinished({ timed_out: timedOut, stderr_b64: stderr, exit }: ExecuteReply): Refusal {
  if (timedOut)
    return refusal(
      "too_large",
      `The operation took more than ${TIMEOUT_MS / 1000} s and was ended`,
      "Search a smaller folder, or with a narrower glob",
    );
  const said = Buffer.from(stderr, "base64").toString("utf8").trim();
  return refusal(
    "busy",
    `The file operation ended early (exit ${exit})${said === "" ? "" : `: ${said}`}`,
    "Try again; world.limits may be too low for it",
    { retry_after_ms: 1000 },
  );
}
