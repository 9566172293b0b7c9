/** `substrate status`, and the first words tried by new users: `help`, `start`, `stop`, `logs`, `version`. */
import { type Command, CommanderError } from "commander";
import { closestName } from "../../schemas/closest-name.ts";
import { Complaint, harmlessLine, printLine, type Terminal } from "./terminal/terminal.ts";
import type { Action } from "./program-world.ts";

export function describeGlance(program: Command, choose: (action: Action) => void): void {
  program
    .command("status")
    .description(
      "Show broker, policy, worlds, agents and what waits for a person, at a glance; exit 1 without a broker",
    )
    .option("--json", "as JSON")
    .action((options: { json?: boolean }) =>
      choose(async (at) => (await import("./commands/status.ts")).showStatus(at, options.json === true)),
    );
  program
    .command("help")
    .description("Explain a command and its options, such as 'substrate help policy learn'")
    .argument("[words...]", "a command")
    .action((words: string[]) => showHelp(program, words));
  program
    .command("version")
    .description("Print the version")
    .action(() => choose((at) => printVersion(at)));
  program
    .command("setup")
    .description("Build the native parts for this machine, where a package from another machine is installed")
    .action(() => choose(async (at) => (await import("./commands/setup.ts")).setUp(at)));
  describeBrokerWords(program, choose);
}

function printVersion(terminal: Terminal): Promise<number> {
  printLine(terminal, terminal.installation.version);
  return Promise.resolve(0);
}

/** Describes the broker's verbs without the noun `broker`; hidden, because `substrate broker` lists the same verbs. */
function describeBrokerWords(program: Command, choose: (action: Action) => void): void {
  program
    .command("start", { hidden: true })
    .description("Start the broker: 'substrate broker start'")
    .option("--current", "replace a running broker of an older build or another checkout")
    .action((options: { current?: boolean }) =>
      choose(async (at) => (await import("./commands/broker.ts")).startBroker(at, options)),
    );
  program
    .command("stop", { hidden: true })
    .description("Stop the broker and every world: 'substrate broker stop'")
    .argument("[words...]")
    .action((words: string[]) =>
      choose(async (at) => {
        if (words.length > 0) throw notOneCommand();
        return await (await import("./commands/broker.ts")).stopBroker(at);
      }),
    );
  program
    .command("logs", { hidden: true })
    .description(
      "Print the broker's log, as 'substrate broker logs' does; 'substrate trace list' shows what commands did",
    )
    .option("-n, --lines <count>", "number of lines", "50")
    .action((options: { lines: string }) =>
      choose(async (at) => (await import("./commands/broker.ts")).brokerLogs(at, options.lines)),
    );
}

function notOneCommand(): Complaint {
  return new Complaint(
    "'substrate stop' takes no words: it stops the broker, every world and every command. To end one command, take it up with 'substrate attach SPAN' and press Ctrl-C",
  );
}

/** Prints the help, then throws a {@link CommanderError} as `--help` does. */
function showHelp(program: Command, words: readonly string[]): void {
  let command = program;
  for (const [index, word] of words.entries()) {
    const found = command.commands.find((one) => one.name() === word);
    if (found === undefined) throw unknownCommand(command, words.slice(0, index), word);
    command = found;
  }
  command.outputHelp();
  throw new CommanderError(0, "commander.help", "(outputHelp)");
}

/** The error of a word that is no command, with the command that was probably meant. `before`: the words that lead to it. */
export function unknownCommand(command: Command, before: readonly string[], word: string): Complaint {
  const path = ["substrate", ...before, harmlessLine(word)].join(" ");
  const near = elsewhere(command, word) ?? closestName(word, namesOf(command));
  const guess = near === undefined ? "" : ` (did you mean '${near}'?)`;
  const all = before.length === 0 ? "substrate --help" : ["substrate help", ...before].join(" ");
  return new Complaint(`Unknown command '${path}'${guess}. '${all}' lists the commands`);
}

/** 'publish' alone is 'world publish'. A word below several commands stands for none. */
function elsewhere(command: Command, word: string): string | undefined {
  const [found, another] = command.commands.filter((one) => namesOf(one).includes(word));
  return found === undefined || another !== undefined ? undefined : `substrate ${found.name()} ${word}`;
}

function namesOf(command: Command): readonly string[] {
  return command.commands.map((one) => one.name());
}
