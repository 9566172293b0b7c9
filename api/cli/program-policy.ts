/** `substrate policy`: verbs, options and help. */
import type { Command } from "commander";
import type { AllowOptions } from "./commands/policy-allow.ts";
import type { LearnOptions } from "./commands/policy-learn.ts";
import type { TestOptions } from "./commands/policy-test.ts";
import type { Action } from "./program-world.ts";

const JSON_FLAG = ["--json", "as JSON"] as const;

export function describePolicy(program: Command, choose: (action: Action) => void): void {
  const policy = program.command("policy").description("Show, change, check, test and learn policies");
  policy
    .command("list")
    .description("List the policies: yours, and the shipped ones")
    .option(...JSON_FLAG)
    .action((options: { json?: boolean }) =>
      choose(async (at) => (await import("./commands/policy.ts")).listPolicies(at, options.json === true)),
    );
  policy
    .command("show")
    .description(
      "Show a policy in force: its rules, its hash, keys that this version does not enforce, and errors in its file",
    )
    .argument("[name]", "policy", "default")
    .option(...JSON_FLAG)
    .action((name: string, options: { json?: boolean }) =>
      choose(async (at) =>
        (await import("./commands/policy.ts")).showPolicy(at, name, options.json === true),
      ),
    );
  policy
    .command("allow")
    .description(
      "Add a rule to this folder's policy that allows more: shows the change, asks at a terminal, writes the file",
    )
    .usage("[options] write PATH | read PATH | net NAME[:PORT] | command PATTERN")
    .argument("<kind>", "write, read, net or command")
    .argument(
      "<what...>",
      "a path (a folder means all below it), a host name with or without a port, or a pattern",
    )
    .option("--policy <name>", "policy to change (default: the agent's policy in this folder)")
    .option("--agent <id>", "agent whose policy is changed (default: SUBSTRATE_AGENT_ID, else human)")
    .option("-y, --yes", "write the change without asking")
    .option("--dry-run", "only show the change")
    .option(...JSON_FLAG)
    .action((kind: string, words: string[], options: AllowOptions) =>
      choose(async (at) =>
        (await import("./commands/policy-allow.ts")).allowInPolicy(at, kind, words, options),
      ),
    );
  policy
    .command("reload")
    .description(
      "Make the broker read policies and settings now, and show the result; edits also apply without a reload",
    )
    .option(...JSON_FLAG)
    .action((options: { json?: boolean }) =>
      choose(async (at) => (await import("./commands/reload.ts")).reloadPolicies(at, options.json === true)),
    );
  policy
    .command("validate")
    .description("Check policies; prints each error with its line and column")
    .argument("[names...]", "names or .yaml files (default: all)")
    .option(...JSON_FLAG)
    .action((names: string[], options: { json?: boolean }) =>
      choose(async (at) =>
        (await import("./commands/policy.ts")).validatePolicies(at, names, options.json === true),
      ),
    );
  policy
    .command("test")
    .description("Run a policy's own ALLOW and DENY cases; exit 1 if a case fails")
    .argument("[name]", "a name or a .yaml file (default: every policy)")
    .option("--cases <folder>", "use the cases in this folder instead of the policy's own")
    .option(...JSON_FLAG)
    .action((name: string | undefined, options: TestOptions) =>
      choose(async (at) => (await import("./commands/policy-test.ts")).testPolicies(at, name, options)),
    );
  policy
    .command("learn")
    .description(
      "Print a patch with the smallest rules that would have allowed what was observed; changes nothing",
    )
    .option("--policy <name>", "policy to propose changes for, from the spans recorded under it", "default")
    .option("--agent <id>", "only commands of this agent")
    .option("--since <time>", "only spans since then: 90m, 24h, 7d, or a time such as 2026-01-31T12:00:00Z")
    .option(
      "--generalise",
      "propose one '*' where several values were seen in the same place, instead of one rule for each",
    )
    .option(...JSON_FLAG)
    .action((options: LearnOptions) =>
      choose(async (at) => (await import("./commands/policy-learn.ts")).learnPolicy(at, options)),
    );
}
