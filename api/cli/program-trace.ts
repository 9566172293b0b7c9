/** `substrate trace`: verbs, options and help. */
import type { Command } from "commander";
import type { ListOptions } from "./commands/trace.ts";
import type { TailOptions } from "./commands/trace.ts";
import type { Action } from "./program-world.ts";

type ShowOptions = { readonly tree?: boolean; readonly all?: boolean; readonly json?: boolean };

export function describeTrace(program: Command, choose: (action: Action) => void): void {
  const show = (span: string, options: ShowOptions): void =>
    choose(async (at) =>
      options.tree === true
        ? (await import("./commands/trace.ts")).showTree(at, span, options)
        : (await import("./commands/trace.ts")).showSpan(at, span, options.json === true),
    );
  const trace = program
    .command("trace")
    .description("Recorded spans")
    .argument("[span]", "a span id to show")
    .option(
      "--tree",
      "with everything below it: programs, connections, builtins, violations, nested commands",
    )
    .option("--all", "each of many alike in the tree, instead of some and a count")
    .option("--json", "as JSON")
    .action((span: string | undefined, options: ShowOptions) =>
      span === undefined ? trace.help() : show(span, options),
    );
  trace
    .command("show")
    .description("One span with everything that was recorded of it")
    .argument("<span>", "a span id")
    .option("--tree", "with everything below it")
    .option("--all", "each of many alike in the tree, instead of some and a count")
    .option("--json", "as JSON")
    .action(show);
  describeList(trace, choose);
  describeTail(trace, choose);
  trace
    .command("verify")
    .description("Check the chain of hashes over all files; exit 1 when it does not hold")
    .option("--head <hash>", "a head that you kept elsewhere")
    .option("--json", "as JSON")
    .action((options: { head?: string; json?: boolean }) =>
      choose(async (at) =>
        (await import("./commands/verify.ts")).verify(at, options.head, options.json === true),
      ),
    );
}

function describeList(trace: Command, choose: (action: Action) => void): void {
  trace
    .command("list")
    .description("The newest spans")
    .option("-n, --limit <count>", "how many", "20")
    .option("--agent <id>", "of one agent")
    .option("--session <id>", "of one session")
    .option(
      "--since <time>",
      "only what ended since then: 30m, 2h, 7d, or a time such as 2026-01-31T12:00:00Z",
    )
    .option("--verdict <verdict>", "allow, isolate, ask, deny, would_deny, would_ask or would_isolate")
    .option("--programs", "the programs that commands started, instead of everything else")
    .option("--outcome <outcome>", "running, ended, timed_out, cancelled, lost, refused or failed")
    .option("--json", "as JSON")
    .action((options: ListOptions) =>
      choose(async (at) => (await import("./commands/trace.ts")).listSpans(at, options)),
    );
}

function describeTail(trace: Command, choose: (action: Action) => void): void {
  trace
    .command("tail")
    .description("The last lines, and new ones as they are written")
    .option("-n, --lines <count>", "how many of the last lines first", "10")
    .option("-f, --follow", "go on until it is interrupted (the default)", true)
    .option("--no-follow", "end after the last lines")
    .option("--agent <id>", "of one agent")
    .option("--session <id>", "of one session")
    .option("--json", "each line as it stands in the trace")
    .action((options: TailOptions) =>
      choose(async (at) => (await import("./commands/trace.ts")).tailSpans(at, options)),
    );
}
