/** `substrate completion`: what shells offer at the Tab key. */
import { Argument, type Command } from "commander";
import { completionScript, type Offered, SHELLS } from "./words/completion-words.ts";
import type { Action } from "./program-world.ts";

export function describeCompletion(program: Command, choose: (action: Action) => void): void {
  program
    .command("completion")
    .description("Print a script by which bash, zsh or fish completes commands and options")
    .addArgument(new Argument("<shell>").choices(SHELLS))
    .addHelpText("after", HELP)
    .action((shell: (typeof SHELLS)[number]) =>
      choose((at) => {
        at.out.write(completionScript(shell, offeredBelow(program, [])));
        return Promise.resolve(0);
      }),
    );
}

function offeredBelow(command: Command, before: readonly string[]): readonly Offered[] {
  const help = command.createHelp();
  const path = [...before, command.name()];
  const commands = help.visibleCommands(command).filter((one) => command.commands.includes(one));
  const options = help
    .visibleOptions(command)
    .flatMap(({ short, long, description: meaning }) =>
      [short, long].flatMap((word) => (word === undefined ? [] : [{ word, meaning }])),
    );
  const own = commands.map((one) => ({ word: one.name(), meaning: one.description() }));
  return [{ path, commands: own, options }, ...commands.flatMap((one) => offeredBelow(one, path))];
}

const HELP = `
bash: a line 'source <(substrate completion bash)' in ~/.bashrc. zsh: 'source <(substrate completion zsh)' in ~/.zshrc, after compinit.
fish: substrate completion fish > ~/.config/fish/completions/substrate.fish`;
