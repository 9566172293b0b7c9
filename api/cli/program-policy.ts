/** `substrate policy`: verbs, options and help. */
import type { Command } from "commander";
import type { AllowOptions } from "./commands/policy-allow.ts";
import type { LearnOptions } from "./commands/policy-learn.ts";
import type { TestOptions } from "./commands/policy-test.ts";
import type { Action } from "./program-world.ts";

const JSON_FLAG = ["--json", "as JSON"] as const;

export function describePolicy(program: Command, choose: (action: Action) => void): void {
  const policy = program.command("policy").description("Policies");
  policy
    .command("show")
    .description(
      "A policy as it holds: its rules, its hash, what this version does not carry out, and what is wrong with its file",
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
      "Make the policy that holds here allow more, by a line in its file: shows the change, asks at a terminal, writes it",
    )
    .usage("[options] write PATH | read PATH | net NAME[:PORT] | command PATTERN")
    .argument("<kind>", "write, read, net or command")
    .argument(
      "<what...>",
      "a path (a folder means all below it), a host name with or without a port, or a pattern",
    )
    .option("--policy <name>", "this policy (default: the one that holds in this folder for the agent)")
    .option("--agent <id>", "for this agent (default: SUBSTRATE_AGENT_ID, else human)")
    .option("-y, --yes", "write it without asking")
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
      "Have the broker read policies and settings again, and say what holds; an edit holds without it",
    )
    .option(...JSON_FLAG)
    .action((options: { json?: boolean }) =>
      choose(async (at) => (await import("./commands/reload.ts")).reloadPolicies(at, options.json === true)),
    );
  policy
    .command("validate")
    .description("Check policies; with line and column of what is wrong")
    .argument("[names...]", "names or .yaml files (default: all)")
    .option(...JSON_FLAG)
    .action((names: string[], options: { json?: boolean }) =>
      choose(async (at) =>
        (await import("./commands/policy.ts")).validatePolicies(at, names, options.json === true),
      ),
    );
  policy
    .command("test")
    .description("Run a policy's own ALLOW and DENY cases; exit 1 when one is not kept")
    .argument("[name]", "a name or a .yaml file (default: every policy)")
    .option("--cases <folder>", "cases from here instead of the policy's own")
    .option(...JSON_FLAG)
    .action((name: string | undefined, options: TestOptions) =>
      choose(async (at) => (await import("./commands/policy-test.ts")).testPolicies(at, name, options)),
    );
  policy
    .command("learn")
    .description(
      "Propose the smallest rules that would have allowed what was observed, as a patch; changes nothing",
    )
    .option("--policy <name>", "the policy whose spans to read, and to propose changes of", "default")
    .option("--agent <id>", "only what this agent ran")
    .option(
      "--since <time>",
      "only what happened since: 90m, 24h, 7d, or a time such as 2026-01-31T12:00:00Z",
    )
    .option("--generalise", "one '*' for several values that were seen in one place, instead of each of them")
    .option(...JSON_FLAG)
    .action((options: LearnOptions) =>
      choose(async (at) => (await import("./commands/policy-learn.ts")).learnPolicy(at, options)),
    );
}
