/** Events of coding agents that decide nothing: they are recorded as spans. Same rows as `shim/front/events.c`. */
import type { EventRequest } from "../../../schemas/generated/types.ts";
import { isObject } from "../../http/valid-request.ts";
import { type Agent, filesOf, folderOf, sessionKey } from "./hook-agents.ts";

type Kind = EventRequest["event"];

const EVENTS: ReadonlyMap<unknown, Kind> = new Map<unknown, Kind>([
  ["SessionStart", "session_start"],
  ["SessionEnd", "session_end"],
  ["UserPromptSubmit", "prompt"],
  ["BeforeAgent", "prompt"],
  ["Stop", "stop"],
  ["AfterAgent", "stop"],
  ["PostToolUse", "tool"],
  ["AfterTool", "tool"],
]);

/** Fields of the request, and of an event. */
const FIELDS: Readonly<Record<Kind, Readonly<Record<string, string>>>> = {
  session_start: { reason: "source" },
  session_end: { reason: "reason" },
  prompt: { prompt: "prompt" },
  stop: {},
  tool: { tool: "tool_name", tool_use_id: "tool_use_id" },
};

/** The kind of such an event, as `POST /v1/events` takes it; undefined for every other event. */
export function eventKind(event: unknown): Kind | undefined {
  return isObject(event) ? EVENTS.get(event["hook_event_name"]) : undefined;
}

/** The body of `POST /v1/events`. Throws `Blocked` for fields of a wrong type. */
export function toldOf(agent: Agent, event: unknown, kind: Kind): object {
  const fields = isObject(event) ? event : {};
  const session = sessionKey(fields["session_id"]);
  const texts = Object.entries(FIELDS[kind]).flatMap(([to, from]) => {
    const text = fields[from];
    return typeof text === "string" && text !== "" ? [[to, text] as const] : [];
  });
  return {
    agent_id: agent.name,
    cwd: folderOf(agent, fields),
    event: kind,
    ...(session === undefined ? {} : { session_key: session }),
    ...Object.fromEntries(texts),
    ...(kind === "tool" ? openedBy(agent, fields) : {}),
  };
}

function openedBy(agent: Agent, { tool_name: name, tool_input: input }: Record<string, unknown>): object {
  const tool = typeof name === "string" && Object.hasOwn(agent.tools, name) ? agent.tools[name] : undefined;
  if (tool === undefined || (tool.kind !== "files" && tool.kind !== "patch")) return {};
  return { files: filesOf({ tool, toolName: String(name), input: isObject(input) ? input : {} }) };
}
