/** The tour at the end of `npm start`: real commands through the real broker, in the current project. */
import { loadPolicy } from "../../broker/policy/index.ts";
import type { ChangesReply, DiffReply, ErrorReply } from "../../schemas/generated/types.ts";
import { coloursFor } from "../cli/words/colours.ts";
import { paintPatch } from "../cli/words/patch-words.ts";
import { policyFile } from "../cli/terminal/policy-files.ts";
import { Complaint, harmlessLine, printLine, type Terminal } from "../cli/terminal/terminal.ts";
import { call } from "../client/client.ts";
import {
  execute,
  expect,
  type Guide,
  keep,
  PROFILE,
  printSpan,
  ran,
  say,
  show,
  title,
  traced,
} from "./guide.ts";
import { network } from "./network.ts";

/** Runs all stops of the tour. Returns 0; throws {@link Complaint} at the first broken promise. */
export async function runTour(terminal: Terminal): Promise<number> {
  const guide = { terminal, colours: coloursFor(terminal), spans: [] };
  sayMode(guide);
  await allowed(guide);
  await denied(guide);
  await isolated(guide);
  await network(guide);
  await spans(guide);
  farewell(guide);
  return 0;
}

/** Prints the mode of the operator's policy first: otherwise the stops suggest an enforcing policy. */
function sayMode({ terminal, colours }: Guide): void {
  const file = policyFile(terminal, "default");
  const result = loadPolicy(file, terminal.installation.policies);
  const mode = "ok" in result ? result.ok.mode : undefined;
  printLine(terminal);
  if (mode === undefined) {
    const problem = "problems" in result ? result.problems[0]?.text : undefined;
    printLine(terminal, colours.red(`Your policy does not load: ${harmlessLine(problem ?? file)}`));
  } else if (mode === "observe") {
    printLine(
      terminal,
      `${colours.yellow("Your policy only observes")}: commands run as before, and the trace records what the policy would have stopped.`,
    );
    printLine(
      terminal,
      `'mode: enforce' in ${file} makes it stop them. The tour uses the policy '${PROFILE}', which enforces.`,
    );
  } else printLine(terminal, `Your policy enforces: ${file}`);
}

async function allowed(guide: Guide): Promise<void> {
  title(guide, "1", "An allowed command runs in a warm world and returns what a shell would");
  const reply = ran(
    guide,
    await execute(guide, { profile: PROFILE, cmd: "git log --oneline -1 2>/dev/null || ls" }),
  );
  show(guide, Buffer.from(reply.stdout_b64, "base64").toString("utf8"));
  expect(reply.exit === 0 && reply.decision.verdict === "allow", "the command should be allowed and succeed");
  say(guide, `${reply.duration_ms} ms, world ${reply.world_id}`);
}

async function denied(guide: Guide): Promise<void> {
  title(guide, "2", "A denied command does not run, however it is spelled, and says why");
  const answer = await execute(guide, { profile: PROFILE, cmd: 'true && "su"do rm -rf /' });
  const { error } = answer.document as ErrorReply;
  expect(answer.status === 403 && error.exit === 126, "the command should be denied");
  keep(guide, error.span_id);
  showDenial(guide, error);
}

function showDenial(guide: Guide, { rule, hint, policy_id: policy }: ErrorReply["error"]): void {
  if (rule === undefined || rule === null)
    throw new Complaint("The tour stops here: the reply names no rule");
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
    await execute(guide, {
      profile: PROFILE,
      cmd: "touch substrate-tour.txt && echo changed > substrate-tour.txt",
    }),
  );
  const diff = reply.fs_diff;
  expect(
    reply.decision.verdict === "isolate" && diff?.held === true,
    "the command should be isolated and its changes held",
  );
  for (const path of diff?.writes ?? []) show(guide, `+ ${path}`);
  for (const path of diff?.mods ?? []) show(guide, `~ ${path}`);
  await lookAndDiscard(guide, reply.span_id);
}

/** Shows the held changes and discards them, as `substrate diff` and `substrate discard` do, to leave the project unchanged. */
async function lookAndDiscard(guide: Guide, id: string): Promise<void> {
  const { terminal, colours } = guide;
  const held = await call(terminal.home.controlSocket, "GET", `/v1/diff/${id}`);
  expect(held.status === 200, "the held changes should be shown");
  const { patch } = held.document as DiffReply;
  printLine(terminal, `  ${colours.bold("$")} substrate diff ${id}`);
  for (const line of paintPatch(colours, patch.trimEnd()).split("\n")) printLine(terminal, `    ${line}`);
  printLine(terminal, `  ${colours.bold("$")} substrate discard ${id}`);
  const dropped = await call(terminal.home.controlSocket, "POST", `/v1/discard/${id}`, {});
  expect(
    dropped.status === 200 && (dropped.document as ChangesReply).left.length === 0,
    "the held changes should be discarded",
  );
  say(guide, "'substrate apply' would have applied them to the project, and 'substrate undo' reverted them");
}

async function spans(guide: Guide): Promise<void> {
  title(guide, "5", "Each of these commands is a span in the trace");
  for (const id of guide.spans) {
    printSpan(guide, (await traced(guide, id)).span);
  }
}

function farewell(guide: Guide): void {
  const { installation, home, cwd } = guide.terminal;
  const cli = `node ${installation.launcher}`;
  printLine(guide.terminal);
  printLine(guide.terminal, "The broker keeps running. Try next:");
  printLine(guide.terminal, `  ${cli} check -- 'curl example.org | sh'`);
  printLine(guide.terminal, `  ${cli} exec -- 'ls -la; id'`);
  printLine(
    guide.terminal,
    `  curl --unix-socket ${home.agentSocket} -H 'content-type: application/json' -d '{"agent_id":"me","cwd":"${cwd}","cmd":"git status"}' http://localhost/v1/execute`,
  );
}
