/** `substrate trace`: verbs, options and help. */
import type { Command } from "commander";
import type { ListOptions } from "./commands/trace.ts";
import type { TailOptions } from "./commands/trace.ts";
import type { SessionsOptions } from "./commands/sessions.ts";
import type { Action } from "./program-world.ts";

type ShowOptions = {
  readonly session?: string;
  readonly tree?: boolean;
  readonly all?: boolean;
  readonly json?: boolean;
};

export function describeTrace(program: Command, choose: (action: Action) => void): void {
  const show = (span: string, options: ShowOptions): void =>
    choose(async (at) =>
      options.tree === true
        ? (await import("./commands/trace.ts")).showTree(at, span, options)
        : (await import("./commands/trace.ts")).showSpan(at, span, options.json === true),
    );
  const trace = program
    .command("trace")
    .description("Show, list, follow and verify recorded spans")
    .argument("[span]", "a span id to show, or 'last' for the newest command in this folder")
    .option(
      "--tree",
      "with everything below it: programs, connections, builtins, violations, nested commands",
    )
    .option("--all", "every entry of the tree, instead of a count for many alike")
    .option(
      "--session <key>",
      "an agent's session in place of a span: its events, and what ran below each prompt",
    )
    .option("--json", "as JSON")
    .action((span: string | undefined, options: ShowOptions) => {
      const { session } = options;
      if (session !== undefined && span === undefined)
        choose(async (at) => (await import("./commands/sessions.ts")).showSession(at, session, options));
      else if (span === undefined) trace.help();
      else show(span, options);
    });
  trace
    .command("sessions")
    .description("List sessions as agents name them: when each began, its last prompt, its commands")
    .option("-n, --limit <count>", "number of sessions, at most 100", "20")
    .option("--agent <id>", "only sessions of this agent")
    .option("--json", "as JSON")
    .action((options: SessionsOptions) =>
      choose(async (at) => (await import("./commands/sessions.ts")).listSessions(at, options)),
    );
  trace
    .command("show")
    .description("Show one span with everything recorded about it")
    .argument("<span>", "a span id, or 'last'")
    .option("--tree", "with everything below it")
    .option("--all", "every entry of the tree, instead of a count for many alike")
    .option("--json", "as JSON")
    .action(show);
  describeList(trace, choose);
  describeTail(trace, choose);
  trace
    .command("verify")
    .description("Check the hash chain over all trace files; exit 1 if it is broken")
    .option("--head <hash>", "also look for this head, of which you kept a copy elsewhere")
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
    .description("List the newest spans")
    .option("-n, --limit <count>", "number of spans", "20")
    .option("--agent <id>", "only spans of this agent")
    .option("--session <id>", "only spans of this session: the agent's own id of it, or a ses_… id")
    .option(
      "--since <time>",
      "only spans that ended since then: 30m, 2h, 7d, or a time such as 2026-01-31T12:00:00Z",
    )
    .option(
      "--verdict <verdict>",
      "only this verdict: allow, isolate, ask, deny, would_deny, would_ask or would_isolate",
    )
    .option("--programs", "list the programs that commands started, instead of all other spans")
    .option(
      "--outcome <outcome>",
      "only this outcome: running, ended, timed_out, cancelled, lost, refused or failed",
    )
    .option("--json", "as JSON")
    .action((options: ListOptions) =>
      choose(async (at) => (await import("./commands/trace.ts")).listSpans(at, options)),
    );
}

function describeTail(trace: Command, choose: (action: Action) => void): void {
  trace
    .command("tail")
    .description("Print the last lines of the trace, and new ones as they are written")
    .option("-n, --lines <count>", "number of earlier lines to print first", "10")
    .option("-f, --follow", "keep running until interrupted (the default)", true)
    .option("--no-follow", "end after the earlier lines")
    .option("--agent <id>", "only spans of this agent")
    .option("--session <id>", "only spans of this session")
    .option("--json", "each line as it stands in the trace")
    .action((options: TailOptions) =>
      choose(async (at) => (await import("./commands/trace.ts")).tailSpans(at, options)),
    );
}
