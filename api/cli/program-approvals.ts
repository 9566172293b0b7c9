/** `substrate approvals`, `approve` and `deny`: options and help. */
import type { Command } from "commander";
import type { ApproveOptions } from "./commands/approvals.ts";
import type { Action } from "./program-world.ts";

const JSON_FLAG = ["--json", "as JSON"] as const;

const ID = ["<id>", "the question's: apr_…, as 'substrate approvals' lists it"] as const;

export function describeApprovals(program: Command, choose: (action: Action) => void): void {
  const approvals = program
    .command("approvals")
    .description("Commands that wait until a person answers, and why")
    .option("--watch", "go on: each new question as it comes, and at a terminal your answer to it")
    .option("--json", "as JSON; with --watch a line for each question")
    .action((options: { json?: boolean; watch?: boolean }) =>
      choose(async (at) => {
        const json = options.json === true;
        return options.watch === true
          ? (await import("./commands/approvals-watch.ts")).watchApprovals(at, json)
          : (await import("./commands/approvals.ts")).listApprovals(at, json);
      }),
    );
  approvals
    .command("preview")
    .description("Try a waiting command out on an overlay that is discarded: what would it change?")
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
    .description("Let a command that waits run")
    .argument(...ID)
    .option("--once", "for one run")
    .option("--session", "for its session, until the policy changes")
    .option("--always", "for always: written to approvals.yaml, yours to edit")
    .action((id: string, options: ApproveOptions) =>
      choose(async (at) => (await import("./commands/approvals.ts")).approve(at, id, options)),
    );
  program
    .command("deny")
    .description("Refuse a command that waits")
    .argument(...ID)
    .action((id: string) => choose(async (at) => (await import("./commands/approvals.ts")).deny(at, id)));
}
