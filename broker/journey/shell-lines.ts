import { realpath } from "node:fs/promises";
import type { ExecuteRequest, Notice } from "../../schemas/generated/types.ts";
import type { Broker } from "../broker.ts";
import type { Job } from "../model/job.ts";
import type { LineJudge, LineVerdict, ShellLine } from "../model/live.ts";
import { cannotRecord, isRefusal, quoted, type Refusal, refusal } from "../model/refusal.ts";
import { isWithin } from "../policy/files/path-denials.ts";
import { IN_WORLD, type How } from "../project/request.ts";
import { refusedSpan, warningSpans } from "../spans/span-records.ts";
import type { SpanRecord } from "../spans/trace.ts";
import { approved, mustAsk } from "./approve.ts";
import { builtinSpans, certaintiesAfter } from "./completed-span.ts";
import type { Notices } from "./notices.ts";
import { prepareJob } from "./prepare-job.ts";
import { refuseByDecision } from "./refuse-by-decision.ts";

/** Judges the lines of `substrate shell` as commands are judged, and records their builtins below the shell's span. */
export class ShellLines implements LineJudge {
  readonly #broker: Broker;
  readonly #shell: Job;
  readonly #started: SpanRecord;
  readonly #notices: Notices;
  #last: Job | undefined;

  /**
   * @param started the shell's start line
   * @param notices the shell's notices, of all its lines
   */
  constructor(broker: Broker, shell: Job, started: SpanRecord, notices: Notices) {
    this.#broker = broker;
    this.#shell = shell;
    this.#started = started;
    this.#notices = notices;
  }

  readonly judge = async (line: ShellLine, signal: AbortSignal): Promise<LineVerdict | Refusal> => {
    this.#last = undefined;
    try {
      const job = prepareJob(this.#broker, this.#shell.agent, this.#requestOf(line), this.#howOf(line));
      if (isRefusal(job)) return job;
      const denial = refuseByDecision(job);
      if (denial !== undefined) return this.#refused(job, denial);
      const allowed = mustAsk(job) ? await approved(this.#broker, job, signal) : job;
      if (isRefusal(allowed)) return this.#refused(job, allowed);
      if (allowed.decision.verdict === "isolate") return await this.#apart(allowed);
      for (const span of warningSpans(allowed, this.#lineOf(allowed))) this.#broker.trace.event(span);
      this.#last = allowed;
      return { run: "here" };
    } catch (fault) {
      return cannotRecord("Nothing ran", fault);
    }
  };

  readonly ended = (exit: number): readonly Notice[] => {
    this.#recordBuiltins(exit);
    return this.#notices.sinceLast();
  };

  /**
   * The folder is the shell's own word, and a program beside it can say another: elsewhere the line would become a command of another
   * project, by that one's policy.
   */
  async #apart(job: Job): Promise<LineVerdict | Refusal> {
    const { project } = this.#shell.place;
    const folder = await realpath(job.place.cwd).catch(() => undefined);
    if (folder !== undefined && isWithin(folder, project)) return { run: "apart", cwd: folder };
    return this.#refused(
      job,
      refusal(
        "invalid_request",
        `This command's changes are held, and the shell stands in ${quoted(job.place.cwd)}, outside its project ${quoted(project)}`,
        "Go to a folder of the project, or start a shell in the other one",
        { path: "cwd" },
      ),
    );
  }

  #recordBuiltins(exit: number): void {
    const job = this.#last;
    this.#last = undefined;
    if (job === undefined) return;
    try {
      const spans = builtinSpans(job, this.#lineOf(job), certaintiesAfter(exit), this.#shell.span);
      for (const span of spans) this.#broker.trace.event(span);
    } catch (error) {
      this.#broker.onFault("Cannot record a builtin of a shell", error);
    }
  }

  #requestOf({ cmd, cwd, approvalWaitMs }: ShellLine): ExecuteRequest {
    const { profile, caller_env } = this.#shell.request;
    return {
      agent_id: this.#shell.agent,
      cmd,
      cwd,
      shell: "bash",
      session_id: this.#shell.session.id,
      parent_span: this.#shell.span,
      approval_wait_ms: approvalWaitMs,
      ...(profile === undefined ? {} : { profile }),
      ...(caller_env === undefined ? {} : { caller_env }),
    };
  }

  /** A shell may stand anywhere; its project stays the one that it was started in. */
  #howOf({ cwd, call }: ShellLine): How {
    const place = { ...this.#shell.place, cwd };
    return { ...IN_WORLD, placeOf: () => place, ...(call === undefined ? {} : { call }) };
  }

  #lineOf({ span, place, decision }: Job): SpanRecord {
    const { verdict, mode, rule } = decision;
    return { ...this.#started, span_id: span, cwd: place.cwd, decision: { verdict, mode, rule } };
  }

  #refused(job: Job, error: Refusal): Refusal {
    this.#broker.trace.event({ ...refusedSpan(job, error), parent_span: this.#shell.span });
    return { ...error, span_id: job.span };
  }
}
