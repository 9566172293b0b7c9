/** Our verdict on what an agent asks a person about: shown in the question, or the answer without one. */
import type { CheckReply } from "../../schemas/generated/types.ts";
import { existsSync } from "node:fs";
import { harmlessLine } from "../cli/terminal/terminal.ts";
import { type Fields, fieldsOf, listOf, refusedFor, succeed } from "./messages.ts";
import type { ToolCall } from "./sessions.ts";
import { fenced } from "./terminals.ts";
import type { Whose } from "./whose.ts";

const CHECK_MS = 10_000;

/** What to do with a question: pass it, with our verdict where there is one; or deny without asking. */
export type Judged =
  | { readonly do: "pass" }
  | { readonly do: "show" | "deny"; readonly title: string; readonly lines: readonly string[] };

/** Without a broker the answer is no, as from the hook. `cwd`: undefined for a session that the editor has not opened. */
export async function judged(whose: Whose, call: ToolCall, cwd: string | undefined): Promise<Judged> {
  const subject = subjectOf(call);
  if (subject === undefined) return { do: "pass" };
  if (cwd === undefined)
    return { do: "deny", title: "denied", lines: ["The editor has not opened the session that this names"] };
  const body = { ...whose.spot(call.cwd ?? cwd), ...subject, format: "text" };
  const env = "files" in subject ? {} : whose.callerShell;
  const signal = AbortSignal.timeout(CHECK_MS);
  try {
    const { decision, lines = [] } = await succeed<CheckReply>(
      whose.socket(),
      "/v1/check",
      { ...body, ...env },
      signal,
    );
    const { verdict, rule } = decision;
    const by = rule === null ? "" : `: '${rule.pattern}' in ${rule.list} (${rule.source})`;
    const title = harmlessLine(`${WORDS[verdict]}${by}`);
    return { do: verdict === "deny" ? "deny" : "show", title, lines };
  } catch (error) {
    const { message } = refusedFor(error);
    return { do: "deny", title: "denied", lines: message.split("\n") };
  }
}

const WORDS: Readonly<Record<CheckReply["decision"]["verdict"], string>> = {
  allow: "allowed",
  isolate: "isolated, changes are held",
  ask: "a person must approve it in Substrate too",
  deny: "denied",
  would_deny: "observed only, would be denied",
  would_ask: "observed only, would be asked",
  would_isolate: "observed only, would be isolated",
};

const ACCESS: Readonly<Record<string, "read" | "search" | "write">> = {
  read: "read",
  search: "search",
  edit: "write",
  delete: "write",
  move: "write",
};

/** The broker's bound of one check; a verdict on a part would read as one on all. */
const MOST_FILES = 100;

function subjectOf({ kind, command, paths }: ToolCall): Record<string, unknown> | undefined {
  if (command !== undefined)
    return typeof command === "string"
      ? { cmd: command, ...(existsSync("/bin/bash") ? { shell: "bash" } : {}) }
      : { argv: command };
  const access = ACCESS[kind ?? ""];
  if (access === undefined || paths === undefined || paths.length > MOST_FILES) return undefined;
  return { files: paths.map((path) => ({ path, access })) };
}

/** A question that we cannot judge says so: its title is the agent's, which could begin with a verdict of its own making. */
export function passed(params: Fields, call: ToolCall): object {
  const toolCall = fieldsOf(params["toolCall"]) ?? {};
  return { ...params, toolCall: { ...toolCall, title: titleOf(call, "not judged") } };
}

/** Our words come first: an editor cuts long titles, and the agent could begin its own with words like these. */
function titleOf(call: ToolCall, verdict: string): string {
  return `Substrate: ${verdict} — ${harmlessLine(call.title ?? "Tool call")}`;
}

/** Adds the verdict to the question's title and content. */
export function shown(
  params: Fields,
  call: ToolCall,
  content: readonly unknown[],
  { title, lines }: Shown,
): object {
  const toolCall = fieldsOf(params["toolCall"]) ?? {};
  return {
    ...params,
    toolCall: {
      ...toolCall,
      title: titleOf(call, title),
      content: [...content, textBlock(fenced(lines.map(harmlessLine).join("\n")))],
    },
  };
}

export type Shown = Exclude<Judged, { readonly do: "pass" }>;

/** The agent's answer for a denied call: its own way to say no, with the reason beside it. */
export function denial(params: Fields, { lines }: Shown): object {
  const options = listOf(params["options"]).map((one) => fieldsOf(one) ?? {});
  const no = ["reject_once", "reject_always"].map((kind) => options.find((one) => one["kind"] === kind));
  const optionId = no.find((one) => one !== undefined)?.["optionId"];
  const outcome = typeof optionId === "string" ? { outcome: "selected", optionId } : { outcome: "cancelled" };
  return { outcome, _meta: { substrate: { verdict: "deny", reason: lines.join("\n") } } };
}

export function textBlock(text: string): object {
  return { type: "content", content: { type: "text", text } };
}
