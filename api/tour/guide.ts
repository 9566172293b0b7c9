/** Steps shared by all stops of the tour: call the broker, print, check. */
import type { ErrorReply, ExecuteReply, Span, TraceReply } from "../../schemas/generated/types.ts";
import { type Colours, paintVerdict } from "../cli/words/colours.ts";
import { Complaint, harmless, printLine, type Terminal } from "../cli/terminal/terminal.ts";
import { type Answer, call } from "../client/client.ts";

/** The shipped policy named by the tour's commands as profile, to enforce under every operator's policy. */
export const PROFILE = "tour";

/** Context of a stop. `spans`: ids of the commands so far, for the last stop. */
export type Guide = { readonly terminal: Terminal; readonly colours: Colours; readonly spans: string[] };

/** Prints the command and posts a request to the broker of the guide's terminal. */
export function execute(guide: Guide, body: Readonly<Record<string, unknown>>): Promise<Answer> {
  const { home, cwd } = guide.terminal;
  const what = String(body["cmd"]);
  printLine(guide.terminal, `  ${guide.colours.bold("$")} ${what}`);
  return call(home.agentSocket, "POST", "/v1/execute", { agent_id: "tour", cwd, ...body });
}

/** Reads a span with its children from the trace. */
export async function traced(guide: Guide, id: string): Promise<TraceReply> {
  const answer = await call(guide.terminal.home.controlSocket, "GET", `/v1/trace/${id}`);
  expect(answer.status === 200, `span ${id} should be found`);
  return answer.document as TraceReply;
}

/** Takes the reply of an executed command; throws {@link Complaint} for any other answer. */
export function ran(guide: Guide, answer: Answer): ExecuteReply {
  if (answer.status !== 200) {
    const { message, hint } = (answer.document as ErrorReply).error;
    throw new Complaint(`The tour stops here: ${harmless(`${message}\n  ${hint}`)}`);
  }
  const reply = answer.document as ExecuteReply;
  keep(guide, reply.span_id);
  return reply;
}

export function keep(guide: Guide, span: string | undefined): void {
  if (span !== undefined) guide.spans.push(span);
}

/** Throws {@link Complaint} if a promise of the tour does not hold. */
export function expect(holds: boolean, wanted: string): void {
  if (!holds) throw new Complaint(`The tour stops here: ${wanted}, but that did not happen`);
}

export function title({ terminal, colours }: Guide, number: string, text: string): void {
  printLine(terminal);
  printLine(terminal, `${colours.cyan(number)}  ${colours.bold(text)}`);
}

export function show({ terminal }: Guide, text: string): void {
  for (const line of harmless(text.trimEnd()).split("\n")) printLine(terminal, `    ${line}`);
}

export function say({ terminal, colours }: Guide, text: string): void {
  printLine(terminal, `    ${colours.dim(text)}`);
}

export function printSpan({ terminal, colours }: Guide, span: Span): void {
  const verdict = paintVerdict(colours, span.decision?.verdict ?? "-");
  printLine(
    terminal,
    `    ${span.span_id}  ${verdict}  exit ${span.exit ?? "-"}  ${harmless(span.cmd ?? "")}`,
  );
}
