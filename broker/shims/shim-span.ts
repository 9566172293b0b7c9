import type { Job } from "../model/job.ts";
import { unreplayed } from "../spans/span-records.ts";
import type { SpanRecord } from "../spans/trace.ts";

/**
 * Builds the start line of a program behind a shim: the program runs on the host, outside any world. Its environment is not
 * recorded, so the span cannot be replayed.
 */
export function shimSpan(job: Job, message: string | undefined): SpanRecord {
  return { ...unreplayed(job), component: "shim", ...(message === undefined ? {} : { message }) };
}
