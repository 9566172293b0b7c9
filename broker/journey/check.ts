import { isRefusal, type Refusal } from "../model/refusal.ts";
import type { CheckReply, ExecuteRequest } from "../../schemas/generated/types.ts";
import type { Broker } from "../broker.ts";
import { environmentFor } from "./caller-shell.ts";
import { withoutWorldVariables } from "../settings/environment.ts";
import { judge, readCommand } from "../policies/judge.ts";
import { begin, twoSessions } from "./resume.ts";
import { undecidedIn } from "../policy/index.ts";
import type { Asker } from "../project/projects.ts";
import { IN_WORLD, placeOf } from "../project/request.ts";
import { commandQuestion } from "../approvals/command-question.ts";
import { prepareJob } from "./prepare-job.ts";

/** Returns the verdict on a command, and the reason. Runs, charges and records nothing. */
export function check(
  broker: Broker,
  agent: string,
  asked: ExecuteRequest,
  asker: Asker = "agent",
): CheckReply | Refusal {
  const sent = withoutWorldVariables(asked);
  const named = twoSessions(sent);
  if (named !== undefined) return named;
  const called = placeOf(broker, sent.cwd, asker);
  if (isRefusal(called)) return called;
  const key = sent.session_key;
  const session = key === undefined ? undefined : broker.sessions.known(agent, called.project, key);
  const begun = begin(broker, agent, sent, called, session, false);
  if (isRefusal(begun)) return begun;
  const { request, place, effective } = begun;
  const environment = environmentFor(broker, effective, request, place, asker);
  const { verdict, mode, rule } = judge(broker, request, place, effective, environment);
  const reply = { decision: { verdict, mode, rule }, policy_id: effective.id, policy_hash: effective.hash };
  if (verdict === "deny") return reply;
  const given = verdict === "ask" ? givenApproval(broker, agent, asked, asker) : undefined;
  const known = given === undefined ? reply : { ...reply, approved: given };
  const [first, ...more] = undecidedIn(readCommand(request));
  return first === undefined ? known : { ...known, undecided: [first, ...more] };
}

/**
 * The id of an earlier answer of a person that lets this call run; undefined where a person would be asked. A check does not say
 * how the command's input will come: an answer for either way counts, and the run itself asks about the other one.
 */
function givenApproval(
  broker: Broker,
  agent: string,
  asked: ExecuteRequest,
  asker: Asker,
): string | undefined {
  const job = prepareJob(broker, agent, asked, { ...IN_WORLD, asker, peeks: true });
  if (isRefusal(job)) return undefined;
  for (const each of [job, { ...job, wouldStream: true }]) {
    const question = commandQuestion(broker, each);
    const given = isRefusal(question) ? undefined : broker.approvals.given(question);
    if (given !== undefined) return given;
  }
  return undefined;
}
