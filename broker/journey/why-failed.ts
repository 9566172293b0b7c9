import { explainErrors } from "./explained-errors.ts";
import { isIsolated, type Job } from "../model/job.ts";
import type { FailureTold, WorldLacks } from "../programs/world-lacks.ts";
import type { WriteRules } from "./refused-writes.ts";
import type { Ran } from "../worlds/run.ts";

type Known = {
  readonly lacks: WorldLacks;
  readonly writes: WriteRules;
  /** Something else was refused, and is told. */
  readonly explained: boolean;
};

/** What is told of a command, or a program, that failed or could not write, beside what was refused with a line of its own. */
export function whyFailed(job: Job, ran: Ran, { lacks, writes, explained }: Known): readonly FailureTold[] {
  const { ending, stderr } = ran;
  const failed = ending.kind === "signalled" || (ending.kind === "exited" && ending.code !== 0);
  const words = { stderr: stderr.bytes(), cwd: job.place.cwd, failed, isolated: isIsolated(job) };
  const paths = explainErrors(words, writes);
  const lacking = lacks.told({
    argv: job.argv,
    failed,
    explained: explained || paths.length > 0,
    builtins: job.decision.builtins.map(({ fragment }) => fragment),
    stderr: () => words.stderr.toString("latin1"),
  });
  return [...paths.map((message) => ({ program: null, message })), ...lacking];
}
