/** What `trace.mjs` measures, from the real code. */
export { Trace } from "../../broker/spans/trace.ts";
export { TraceLog } from "../../broker/spans/trace-log.ts";
export { traceLimits } from "../../broker/spans/retention.ts";
export { verifyTrace } from "../../broker/spans/verify.ts";
export { NO_CHANGES } from "../../world/model/fs-diff.ts";
