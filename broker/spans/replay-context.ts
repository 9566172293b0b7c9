import { environmentHash } from "../environment.ts";
import type { Job } from "../job.ts";
import type { SpanRecord } from "./trace.ts";

/** What a replay of this command must restore or compare. */
export function replayContext(job: Job): SpanRecord["replay_context"] {
  const added = job.request.env;
  const { variables, hash } = job.environment;
  const env = added === undefined ? variables : { ...variables, ...added };
  return {
    path: env["PATH"] ?? null,
    env_hash: added === undefined ? hash : environmentHash(env),
    umask: "0022",
    locale: env["LC_ALL"] ?? env["LANG"] ?? null,
    cwd: job.place.cwd,
    policy_id: job.effective.id,
    policy_commit: job.effective.commit,
    world_image: job.worldImage,
    project_commit: job.projectCommit,
    dirty_hash: job.dirtyHash,
  };
}
