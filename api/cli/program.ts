/** The command line: nouns, verbs, options and help. The actions lie in `commands/`, each imported when called. */
import { Command, CommanderError, Option } from "commander";
import { describeAcp } from "./program-acp.ts";
import { describeAgent } from "./program-agent.ts";
import { describeApprovals } from "./program-approvals.ts";
import { describeBudget } from "./program-budget.ts";
import { describeCompletion } from "./program-completion.ts";
import { describeChanges } from "./program-changes.ts";
import { describeGlance, unknownCommand } from "./program-glance.ts";
import { describeInit } from "./program-init.ts";
import { describeHook } from "./program-hook.ts";
import { describeMcp } from "./program-mcp.ts";
import { describePolicy } from "./program-policy.ts";
import { describeTrace } from "./program-trace.ts";
import { describeReplay } from "./program-replay.ts";
import { describeService } from "./program-service.ts";
import { describeShim } from "./program-shim.ts";
import { type Action, describeWorld } from "./program-world.ts";
import type { StartOptions } from "./commands/broker.ts";
import { isTerminal } from "./terminal/raw-mode.ts";
import { Complaint, EXIT_SUBSTRATE, type Terminal } from "./terminal/terminal.ts";

/** Runs a command line, by default `shell` on a terminal, and returns the exit code. Never throws. */
export async function runCli(terminal: Terminal, given: readonly string[]): Promise<number> {
  let action: Action | undefined;
  const words = given.length === 0 && isTerminal(terminal) ? ["shell"] : given;
  // Words of sh(1), of which commander would take some for its own.
  if (words[0] === "sh") return await runSh(terminal, words.slice(1));
  const program = describeProgram(terminal, (chosen) => {
    action = chosen;
  });
  try {
    await program.parseAsync([...words], { from: "user" });
    return action === undefined ? 0 : await action(terminal);
  } catch (error) {
    return complain(terminal, error);
  }
}

async function runSh(terminal: Terminal, words: readonly string[]): Promise<number> {
  try {
    return await (await import("./commands/sh.ts")).shCommand(terminal, words);
  } catch (error) {
    return complain(terminal, error);
  }
}

function describeProgram(terminal: Terminal, choose: (action: Action) => void): Command {
  const program = new Command("substrate")
    .description("Decides, isolates and records the commands that coding agents run")
    .version(terminal.installation.version)
    .enablePositionalOptions()
    .passThroughOptions()
    .allowExcessArguments()
    .showHelpAfterError("(substrate --help lists the commands)")
    .exitOverride()
    .configureOutput({
      writeOut: (text) => terminal.out.write(text),
      writeErr: (text) => terminal.err.write(text),
    });
  program.action(() => answerNoCommand(program));
  program.hook("preAction", async (_program, command) => {
    await (await import("./commands/start-when-needed.ts")).startWhenNeeded(terminal, verbOf(command));
  });
  describeBroker(program, choose);
  describeCommands(program, choose);
  describeApprovals(program, choose);
  describeWorld(program, choose);
  describeChanges(program, choose);
  describeTrace(program, choose);
  describeReplay(program, choose);
  describePolicy(program, choose);
  describeBudget(program, choose);
  describeShim(program, choose);
  describeService(program, choose);
  describeInit(program, choose);
  describeGlance(program, choose);
  describeCompletion(program, choose);
  describeHook(program, choose);
  describeMcp(program, choose);
  describeAcp(program, choose);
  describeAgent(program, choose);
  program
    .command("tour", { hidden: true })
    .action(() => choose(async (at) => (await import("../tour/tour.ts")).runTour(at)));
  refuseMoreWords(program);
  return program;
}

/** 'substrate broker stop SPAN' must not stop the broker. The program itself takes any words, to name the one that is no command. */
function refuseMoreWords(command: Command): void {
  for (const one of command.commands) {
    one.allowExcessArguments(false);
    refuseMoreWords(one);
  }
}

/** Answers a line without a known command: help for an empty line, else an error that names the nearest command. */
function answerNoCommand(program: Command): void {
  const [word] = program.args;
  if (word === undefined) return program.help();
  throw unknownCommand(program, [], word);
}

/** Words of a verb, without `substrate`. */
function verbOf(command: Command): string {
  const words: string[] = [];
  for (let at = command; at.parent !== null; at = at.parent) words.unshift(at.name());
  return words.join(" ");
}

function describeBroker(program: Command, choose: (action: Action) => void): void {
  const broker = program.command("broker").description("Start, stop and inspect the broker");
  broker
    .command("start")
    .description("Start the broker, unless it is already running")
    .option("--foreground", "stay in this process, for service managers")
    .option("--current", "replace a running broker of an older build or another checkout")
    .addOption(new Option("--detached").hideHelp())
    .addOption(new Option("--service").hideHelp())
    .action((options: StartOptions) =>
      choose(async (at) => (await import("./commands/broker.ts")).startBroker(at, options)),
    );
  broker
    .command("stop")
    .description("Stop the broker and end every world")
    .action(() => choose(async (at) => (await import("./commands/broker.ts")).stopBroker(at)));
  broker
    .command("status")
    .description("Show whether the broker runs, its version and its sockets")
    .option("--json", "as JSON")
    .action((options: { json?: boolean }) =>
      choose(async (at) => (await import("./commands/broker.ts")).brokerStatus(at, options.json === true)),
    );
  broker
    .command("logs")
    .description("Print the last lines of the broker's log")
    .option("-n, --lines <count>", "number of lines", "50")
    .option("--json", "accepted but not needed: the log is JSON lines")
    .action((options: { lines: string }) =>
      choose(async (at) => (await import("./commands/broker.ts")).brokerLogs(at, options.lines)),
    );
}

function describeCommands(program: Command, choose: (action: Action) => void): void {
  const agent = [
    "--agent <id>",
    "agent that the command belongs to (default: SUBSTRATE_AGENT_ID, else human)",
  ] as const;
  const profile = [
    "--profile <policy>",
    "a policy that narrows the assigned one (default: SUBSTRATE_PROFILE)",
  ] as const;
  const shell = ["--shell <shell>", "shell for a command given as one word: sh (default) or bash"] as const;
  const env = [
    "--env <name[=value]>",
    "set a variable for the command; NAME alone copies its value from this shell. Repeatable",
    (one: string, before: readonly string[] = []) => [...before, one],
  ] as const;
  program
    .command("exec")
    .description(
      "Run one command in a world, with this shell's PATH and the variables that the policy passes on",
    )
    .option(...agent)
    .option(...profile)
    .option(...shell)
    .option(...env)
    .option(
      "--timeout <time>",
      "end the command after this time: 500ms, 90s, 10m or 2h; a plain number is milliseconds (default: no limit)",
    )
    .option(
      "--stdin",
      "pass what is typed at this terminal to the command; a pipe or a file is always passed on",
    )
    .option("--detach", "print the command's span and leave it running: 'substrate attach SPAN' takes it up")
    .option(
      "--session <key>",
      "begin in the folder and with the exported variables that the last command of this key left in the project",
    )
    .option("--session-state <what>", "what this one leaves to the next: all (default), folder or none")
    .option("--keep", "let the command's background processes go on after it has ended")
    .option("--require-approval", "ask a person first, even if the policy allows the command")
    .option("--wait", "if a person must approve the command, wait for the answer, given here or elsewhere")
    .option("--json", "print the broker's whole reply instead of the command's output")
    .passThroughOptions()
    .argument("<command...>", "one word: a shell command; more words: a program and its arguments")
    .usage("[options] -- COMMAND...")
    .addHelpText("after", EXEC_HELP)
    .action((words: string[], options: object) =>
      choose(async (at) => (await import("./commands/exec.ts")).execCommand(at, words, options)),
    );
  program
    .command("shell")
    .description("An interactive bash in a world; each line is decided as a command is")
    .option(...agent)
    .option(...profile)
    .option(...env)
    .addHelpText(
      "after",
      "\nNone of bash's startup files is read. Lines are kept in SUBSTRATE_HOME/shell-history, except those that begin with a space; Ctrl-R finds one again.",
    )
    .action((options: object) =>
      choose(async (at) => (await import("./commands/shell.ts")).shellCommand(at, options)),
    );
  program
    .command("run")
    .description(
      "Run a whole program in a world, such as a coding agent, with this terminal as its own and a home of its own per profile",
    )
    .option(...agent)
    .option(...profile)
    .option(...env)
    .option("--detach", "print the program's span and leave it running: 'substrate attach SPAN' takes it up")
    .option("--real-home", "show the program your own home, as the policy allows it, as 'exec' does")
    .passThroughOptions()
    .argument("<program...>", "the program and its arguments; a single word with spaces is a shell command")
    .usage("[options] -- PROGRAM...")
    .action((words: string[], options: object) =>
      choose(async (at) => (await import("./commands/run.ts")).runCommand(at, words, options)),
    );
  program
    .command("attach")
    .description("Take up a detached command: its last output, its terminal, its end")
    .argument("<span>", "the span that --detach printed")
    .addHelpText(
      "after",
      "\nAt a terminal, '~.' at the beginning of a line leaves the command running, and so does closing the terminal.\nOne terminal at a time: a second 'attach' is refused until the first one leaves.",
    )
    .action((span: string) =>
      choose(async (at) => (await import("./commands/run.ts")).attachCommand(at, span)),
    );
  program
    .command("check")
    .description("Show the verdict on a command and the rule that gives it; runs nothing")
    .option(...agent)
    .option(...profile)
    .option(...shell)
    .option(...env)
    .option("--json", "as JSON")
    .passThroughOptions()
    .argument("<command...>", "one word: a shell command; more words: a program and its arguments")
    .usage("[options] -- COMMAND...")
    .action((words: string[], options: object) =>
      choose(async (at) => (await import("./commands/check.ts")).checkCommand(at, words, options)),
    );
}

const EXEC_HELP = `
The first Ctrl-C goes to the command, a second one ends it. 'ulimit' settings of this shell do not apply: the world has resource limits
of its own, which the command can lower for itself (exec -- 'ulimit -n 256; COMMAND').`;

/** Names of errors written for people: shown without a stack trace. */
const KNOWN: readonly string[] = [
  "NoBroker",
  "Sandboxed",
  "HomeRefused",
  "ConfigRefused",
  "TraceRefused",
  "DatabaseRefused",
  "AlreadyRunning",
  "SocketInUse",
  "NotWritten",
  "HandOverRefused",
  "ServiceRefused",
];

function complain(terminal: Terminal, error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_SUBSTRATE;
  terminal.err.write(`substrate: ${wordsOf(error)}\n`);
  return EXIT_SUBSTRATE;
}

function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // Of a socket to the broker: a closed standard output ends the verb earlier.
  if ("code" in error && error.code === "EPIPE")
    return "The broker closed the connection: it has ended, or its clients hold too many. Try again; 'substrate broker logs' shows its last messages";
  if ("code" in error && error.code === "ECONNRESET")
    return "The broker ended before it replied. 'substrate broker logs' shows its last messages, 'substrate broker start' starts it again";
  if (error instanceof Complaint || KNOWN.includes(error.name)) return error.message;
  return error.stack ?? error.message;
}
