/** `substrate approvals`, `approve` and `deny`: options and help. */
import { type Command, Option } from "commander";
import type { ApproveOptions } from "./commands/approvals.ts";
import type { Action } from "./program-world.ts";

const JSON_FLAG = ["--json", "as JSON"] as const;

const ID = ["<id>", "id of the waiting command: apr_…, as 'substrate approvals' lists it"] as const;

export function describeApprovals(program: Command, choose: (action: Action) => void): void {
  const approvals = program
    .command("approvals")
    .description("List the commands that wait for a person's approval, and why")
    .option(
      "--watch",
      "keep running: show each new question, on the desktop too (off: approvals.notify), and at a terminal ask for your answer",
    )
    .option("--json", "as JSON; with --watch one line per question")
    .addOption(
      new Option(
        "--call",
        "ask the questions of the call SUBSTRATE_CALL that wait now (the native front's)",
      ).hideHelp(),
    )
    .addOption(new Option("--waiting", "as --call alone (a native front from before)").hideHelp())
    .addHelpText(
      "after",
      "\nThe user who runs the broker (and root) answers, with 'substrate approve' or 'substrate deny'; commands in a world cannot.",
    )
    .action((options: { json?: boolean; watch?: boolean; call?: boolean }) =>
      choose(async (at) => {
        if (options.call === true)
          return (await import("./questions/ask-here.ts")).askAboutCall(
            at,
            at.environment["SUBSTRATE_CALL"] ?? "",
          );
        const json = options.json === true;
        return options.watch === true
          ? (await import("./commands/approvals-watch.ts")).watchApprovals(at, json)
          : (await import("./commands/approvals.ts")).listApprovals(at, json);
      }),
    );
  approvals
    .command("preview")
    .description(
      "Show what a waiting command would change, by running it on an overlay that is then discarded",
    )
    .argument(...ID)
    .option(...JSON_FLAG)
    .action((id: string, _options: object, command: Command) =>
      choose(async (at) =>
        (await import("./commands/approvals.ts")).previewApproval(
          at,
          id,
          command.optsWithGlobals()["json"] === true,
        ),
      ),
    );
  program
    .command("approve")
    .description("Approve a waiting command")
    .argument(...ID)
    .option("--once", "for one run")
    .option("--session", "for the command's session, until the policy changes")
    .option("--always", "permanently: written to approvals.yaml, which you can edit")
    .option("-y, --yes", "at a terminal: without a question")
    .action((id: string, options: ApproveOptions) =>
      choose(async (at) => (await import("./commands/approvals.ts")).approve(at, id, options)),
    );
  program
    .command("deny")
    .description("Refuse a waiting command")
    .argument(...ID)
    .action((id: string) => choose(async (at) => (await import("./commands/approvals.ts")).deny(at, id)));
}
