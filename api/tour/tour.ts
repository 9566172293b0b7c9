/** `npm start` ends with this: real commands through the real broker, on the project that is at hand. */
import { createServer, type Server } from "node:net";
import type { ErrorReply, ExecuteReply, Span, TraceReply } from "../../schemas/generated/types.ts";
import { type Colours, coloursFor, paintVerdict } from "../cli/colours.ts";
import { Complaint, harmless, printLine, type Terminal } from "../cli/terminal.ts";
import { type Answer, call } from "../client.ts";

/** The shipped policy that the tour narrows with, so that it enforces whatever the operator has set. */
const PROFILE = "tour";

type Guide = { readonly terminal: Terminal; readonly colours: Colours; readonly spans: string[] };

/** Returns 0 when every stop of the tour showed what it promises; throws {@link Complaint} at the first that does not. */
export async function runTour(terminal: Terminal): Promise<number> {
  const guide = { terminal, colours: coloursFor(terminal), spans: [] };
  await allowed(guide);
  await denied(guide);
  await isolated(guide);
  await blockedConnection(guide);
  await spans(guide);
  farewell(guide);
  return 0;
}

async function allowed(guide: Guide): Promise<void> {
  title(guide, "1", "An allowed command runs in a warm world and returns what a shell would");
  const reply = ran(guide, await execute(guide, { cmd: "git log --oneline -1 2>/dev/null || ls" }));
  show(guide, Buffer.from(reply.stdout_b64, "base64").toString("utf8"));
  expect(
    reply.exit === 0 && reply.decision.verdict === "allow",
    "the command was to be allowed and to succeed",
  );
  say(guide, `${reply.duration_ms} ms, world ${reply.world_id}`);
}

async function denied(guide: Guide): Promise<void> {
  title(guide, "2", "A denied command does not run, however it is spelled, and says why");
  const answer = await execute(guide, { cmd: 'true && "su"do rm -rf /' });
  const { error } = answer.document as ErrorReply;
  expect(answer.status === 403 && error.exit === 126, "the command was to be denied");
  keep(guide, error.span_id);
  showDenial(guide, error);
}

function showDenial(guide: Guide, { rule, hint, policy_id: policy }: ErrorReply["error"]): void {
  if (rule === undefined || rule === null)
    throw new Complaint("The tour stops here: the answer names no rule");
  const lines = [
    ["denied", rule.fragment],
    ["because", rule.reason ?? "the operator's rule gives no reason"],
    ["rule", `'${rule.pattern}' in ${rule.list} of policy '${policy}' (${rule.source})`],
    ["next", hint],
  ] as const;
  for (const [name, text] of lines) show(guide, `${name.padEnd(8)} ${text}`);
}

async function isolated(guide: Guide): Promise<void> {
  title(
    guide,
    "3",
    "An isolated command works on an overlay: its changes are held, the project is untouched",
  );
  const reply = ran(
    guide,
    await execute(guide, { cmd: "touch substrate-tour.txt && echo changed > substrate-tour.txt" }),
  );
  const diff = reply.fs_diff;
  expect(
    reply.decision.verdict === "isolate" && diff?.held === true,
    "the command was to be isolated and its changes held",
  );
  for (const path of diff?.writes ?? []) show(guide, `+ ${path}`);
  for (const path of diff?.mods ?? []) show(guide, `~ ${path}`);
  say(guide, `overlay ${reply.isolation.overlay}; 'substrate diff' and 'apply' are not in this version`);
}

async function blockedConnection(guide: Guide): Promise<void> {
  title(guide, "4", "A connection to a service of this machine is refused: the world's localhost is its own");
  let seen = 0;
  const server = createServer(() => {
    seen += 1;
  });
  const port = await listen(server);
  try {
    const reply = ran(
      guide,
      await execute(guide, { cmd: `exec 3<>/dev/tcp/127.0.0.1/${port}`, shell: "bash" }),
    );
    show(guide, Buffer.from(reply.stderr_b64, "base64").toString("utf8"));
    expect(reply.exit !== 0 && seen === 0, "the connection was to be refused and the server to see nothing");
    say(guide, "the server on this machine saw no connection");
  } finally {
    server.close();
  }
  say(guide, "SKIP an allowed connection — this version's worlds have no network at all");
}

async function spans(guide: Guide): Promise<void> {
  title(guide, "5", "Each of them is a span in the trace");
  for (const id of guide.spans) {
    const answer = await call(guide.terminal.home.controlSocket, "GET", `/v1/trace/${id}`);
    expect(answer.status === 200, `span ${id} was to be found`);
    printSpan(guide, (answer.document as TraceReply).span);
  }
}

function farewell(guide: Guide): void {
  const { installation, home, cwd } = guide.terminal;
  const cli = `node ${installation.launcher}`;
  printLine(guide.terminal);
  printLine(guide.terminal, "The broker goes on running. Try next:");
  printLine(guide.terminal, `  ${cli} check -- 'curl example.org | sh'`);
  printLine(guide.terminal, `  ${cli} exec -- 'ls -la; id'`);
  printLine(
    guide.terminal,
    `  curl --unix-socket ${home.agentSocket} -H 'content-type: application/json' -d '{"agent_id":"me","cwd":"${cwd}","cmd":"git status"}' http://localhost/v1/execute`,
  );
}

function execute(guide: Guide, body: Readonly<Record<string, unknown>>): Promise<Answer> {
  const { home, cwd } = guide.terminal;
  const what = String(body["cmd"]);
  printLine(guide.terminal, `  ${guide.colours.bold("$")} ${what}`);
  return call(home.agentSocket, "POST", "/v1/execute", { agent_id: "tour", cwd, profile: PROFILE, ...body });
}

function ran(guide: Guide, answer: Answer): ExecuteReply {
  if (answer.status !== 200) {
    const { message, hint } = (answer.document as ErrorReply).error;
    throw new Complaint(`The tour stops here: ${harmless(`${message}\n  ${hint}`)}`);
  }
  const reply = answer.document as ExecuteReply;
  keep(guide, reply.span_id);
  return reply;
}

function keep(guide: Guide, span: string | undefined): void {
  if (span !== undefined) guide.spans.push(span);
}

function expect(holds: boolean, wanted: string): void {
  if (!holds) throw new Complaint(`The tour stops here: ${wanted}, and that is not what happened`);
}

function title({ terminal, colours }: Guide, number: string, text: string): void {
  printLine(terminal);
  printLine(terminal, `${colours.cyan(number)}  ${colours.bold(text)}`);
}

function show({ terminal }: Guide, text: string): void {
  for (const line of harmless(text.trimEnd()).split("\n")) printLine(terminal, `    ${line}`);
}

function say({ terminal, colours }: Guide, text: string): void {
  printLine(terminal, `    ${colours.dim(text)}`);
}

function printSpan({ terminal, colours }: Guide, span: Span): void {
  const verdict = paintVerdict(colours, span.decision?.verdict ?? "-");
  printLine(
    terminal,
    `    ${span.span_id}  ${verdict}  exit ${span.exit ?? "-"}  ${harmless(span.cmd ?? "")}`,
  );
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      if (address === null || typeof address === "string")
        reject(new Complaint("The tour cannot open a port on 127.0.0.1"));
      else resolve(address.port);
    });
  });
}
