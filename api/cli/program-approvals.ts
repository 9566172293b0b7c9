/** `substrate approvals`, `approve` and `deny`: options and help. */
import type { Command } from "commander";
import type { ApproveOptions } from "./commands/approvals.ts";
import type { Action } from "./program-world.ts";

const JSON_FLAG = ["--json", "as JSON"] as const;

export function describeApprovals(program: Command, choose: (action: Action) => void): void {
  const approvals = program
    .command("approvals")
    .description("What waits for a person's answer")
    .option(...JSON_FLAG)
    .action((options: { json?: boolean }) =>
      choose(async (at) =>
        (await import("./commands/approvals.ts")).listApprovals(at, options.json === true),
      ),
    );
  approvals
    .command("preview")
    .description("Try a waiting command out on an overlay that is discarded: what would it change?")
    .argument("<id>", "of the question: apr_…")
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
    .description("Say yes to what waits")
    .argument("<id>", "of the question: apr_…")
    .option("--once", "for one run")
    .option("--session", "for its session, until the policy changes")
    .option("--always", "for always: written to approvals.yaml, yours to edit")
    .action((id: string, options: ApproveOptions) =>
      choose(async (at) => (await import("./commands/approvals.ts")).approve(at, id, options)),
    );
  program
    .command("deny")
    .description("Say no to what waits")
    .argument("<id>", "of the question: apr_…")
    .action((id: string) => choose(async (at) => (await import("./commands/approvals.ts")).deny(at, id)));
}
