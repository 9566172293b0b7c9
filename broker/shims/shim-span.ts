import type { Job } from "../model/job.ts";
import { unreplayed } from "../spans/span-records.ts";
import type { SpanRecord } from "../spans/trace.ts";

/**
 * The line that stands before a program behind a shim starts: on the host, in no world. Its environment is kept nowhere, so that it
 * cannot be replayed.
 */
export function shimSpan(job: Job, message: string | undefined): SpanRecord {
  return { ...unreplayed(job), component: "shim", ...(message === undefined ? {} : { message }) };
}
