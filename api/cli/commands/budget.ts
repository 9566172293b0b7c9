import { resolve } from "node:path";
import type {
  BudgetAccount,
  BudgetReply,
  BudgetsReply,
  BudgetState,
  BudgetWindow,
} from "../../../schemas/generated/types.ts";
import { coloursFor } from "../words/colours.ts";
import { ask, withdraw } from "../terminal/replies.ts";
import { printRows } from "../terminal/rows.ts";
import { Complaint, printJson, printLine, type Terminal } from "../terminal/terminal.ts";

export type BudgetOptions = { readonly cwd?: string; readonly json?: boolean };

const WORDS: Readonly<Record<BudgetState["name"], string>> = {
  max_execs: "commands",
  max_runtime_ms: "run time",
  max_egress_bytes: "sent",
};

/** The budgets of an agent, or of everybody of whom something counts. */
export async function showBudget(
  terminal: Terminal,
  agent: string | undefined,
  options: BudgetOptions,
): Promise<number> {
  if (agent === undefined) return await showAll(terminal, options);
  const place =
    options.cwd === undefined ? "" : `?cwd=${encodeURIComponent(resolve(terminal.cwd, options.cwd))}`;
  const reply = await ask<BudgetReply>(terminal, `${pathOf(agent)}${place}`);
  show(terminal, reply, options);
  return 0;
}

/** Sets what an agent used to nothing, and shows what is then. */
export async function resetBudget(
  terminal: Terminal,
  agent: string,
  options: BudgetOptions,
): Promise<number> {
  const reply = await withdraw<BudgetReply>(terminal, pathOf(agent));
  if (options.json !== true) printLine(terminal, "The budget is reset");
  show(terminal, reply, options);
  return 0;
}

async function showAll(terminal: Terminal, options: BudgetOptions): Promise<number> {
  if (options.cwd !== undefined) throw new Complaint("Cannot use --cwd without an agent: name one");
  const reply = await ask<BudgetsReply>(terminal, "/v1/budgets");
  if (options.json === true) printJson(terminal, reply);
  else for (const account of reply.budgets) printAccount(terminal, account);
  return 0;
}

function show(terminal: Terminal, reply: BudgetReply, options: BudgetOptions): void {
  if (options.json === true) return printJson(terminal, reply);
  printAccount(terminal, reply.budget);
  if (reply.shared !== null) printAccount(terminal, reply.shared);
}

function pathOf(agent: string): string {
  // Without a name the path is the one of everybody.
  if (agent === "") throw new Complaint("Cannot look up the budget of '': name an agent, or +shared");
  return `/v1/budgets/${encodeURIComponent(agent)}`;
}

function printAccount(terminal: Terminal, account: BudgetAccount): void {
  const { agent_id: name, kind, policy_id: policy, windows } = account;
  const title = kind === "shared" ? "All labels together" : `${kind === "agent" ? "Agent" : "Label"} ${name}`;
  printRows(terminal, `${coloursFor(terminal).bold(title)}, limits of policy ${policy}`);
  for (const window of windows) {
    printLine(terminal, `  ${windowWords(window)}`);
    for (const state of window.budgets) printLine(terminal, `    ${stateWords(state)}`);
  }
}

function windowWords({ length_ms: length, ends_at: end }: BudgetWindow): string {
  const name = `window of ${durationWords(length)}`;
  return end === null ? `${name}, starts with the first use` : `${name}, ends ${end}`;
}

function stateWords({ name, limit, used, reserved, lowered }: BudgetState): string {
  const amount = (value: number): string =>
    name === "max_runtime_ms" ? durationWords(value) : value.toLocaleString("en-US");
  const unit = name === "max_egress_bytes" ? " bytes" : "";
  const most = limit === null ? `${unit}, no limit` : ` of ${amount(limit)}${unit}`;
  const held =
    reserved === 0 ? "" : `, ${amount(reserved)} reserved by commands that run or wait for approval`;
  const why = lowered ? ", lowered by a request" : "";
  return `${WORDS[name].padEnd(9)} ${amount(used)}${most}${held}${why}`;
}

const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1000],
] as const;

/** The largest unit of which there is more than one and that leaves nothing over, or seconds with their fraction. */
function durationWords(ms: number): string {
  const whole =
    UNITS.find(([, size]) => ms > size && ms % size === 0) ?? UNITS.find(([, size]) => ms === size);
  if (whole !== undefined) return `${ms / whole[1]}${whole[0]}`;
  return ms < 1000 ? `${ms}ms` : `${(ms / 1000).toFixed(1)}s`;
}
