import { execute } from "../../broker/journey/execute.ts";
import { type LiveClient, LiveCommand } from "../../broker/live/live-command.ts";
import { type Refusal, refusal } from "../../broker/model/refusal.ts";
import type { Outcome } from "../../broker/model/outcome.ts";
import { BY_PERSON, IN_WORLD } from "../../broker/project/request.ts";
import type { ExecuteRequest } from "../../schemas/generated/types.ts";
import type { Context } from "./context.ts";
import type { StreamOrder } from "./stream-order.ts";

function tooManyDetached(): Refusal {
  return refusal(
    "busy",
    "This caller, or all agents together, run too many commands that may be detached",
    "Leave 'on_disconnect' out, or wait for one of them to end",
    { retry_after_ms: 1000 },
  );
}

/** Replaces the command of a session shell by the no-op `:` for the verdict: the broker judges each line later. */
function asNothing({ argv: _argv, ...request }: ExecuteRequest): ExecuteRequest {
  return { ...request, cmd: ":" };
}

/** Makes a live command for a client; `run` takes it through the journey, and the client is told the end. */
export function liveCommand(
  { broker, caller, log }: Context,
  { request, live, typed, hasOwnHome }: StreamOrder,
  client: LiveClient,
  call: string,
): { readonly command: LiveCommand; readonly run: () => Promise<void> } {
  const options = { ...live, isPersons: caller.kind === "operator" };
  const command = new LiveCommand(options, client, (span, started) => broker.liveCommands.add(span, started));
  if (typed !== undefined) {
    command.type(typed);
    command.endInput();
  }
  const how = {
    ...(caller.kind === "operator" ? BY_PERSON : IN_WORLD),
    ...(live.isShell === true ? { judgedAs: asNothing } : {}),
    call,
    live: command,
    hasOwnHome,
  };
  // The colon is in no agent's name, so none is taken for another kind of caller.
  const counted = caller.kind === "agent" ? `agent:${caller.agent}` : caller.kind;
  const run = async (): Promise<void> => {
    const unlisten = broker.approvals.listeners.listen(call, (approval) => command.asked(approval));
    let outcome: Outcome | undefined;
    const isCounted = live.onDisconnect === "kill" || broker.liveCommands.count(counted);
    try {
      if (!isCounted) return command.end({ kind: "refused", error: tooManyDetached() });
      outcome = await execute(broker, request.agent_id, request, command.signal, how);
      if (outcome.kind === "refused" && outcome.error.code === "internal")
        log.error({ refusal: outcome.error }, "A command failed because of a bug");
      command.end(outcome);
    } finally {
      unlisten();
      if (isCounted && live.onDisconnect === "detach") broker.liveCommands.countBack(counted);
      if (command.span !== undefined && outcome === undefined) broker.liveCommands.forget(command.span);
      if (command.span !== undefined) broker.liveCommands.ended(command.span, counted);
      if (outcome?.kind === "ran") outcome.sent?.();
    }
  };
  return { command, run };
}
