import type { Job } from "../job.ts";
import { common } from "../spans/span-records.ts";
import type { SpanRecord } from "../spans/trace.ts";

/** The line that stands before a program behind a shim starts: on the host, in no world. Its environment is kept nowhere. */
export function shimSpan(job: Job, message: string | undefined): SpanRecord {
  const { given: _given, ...fields } = common(job);
  const said = message === undefined ? {} : { message };
  return { ...fields, component: "shim", replayable: false, ...said };
}
