/** What is not as it was when the command ran: listed whether it mattered or not. Pure. */
import type { Isolation, ReplayDrift, Span } from "../../schemas/generated/types.ts";

type Facts = Readonly<Record<string, string | null>>;

/** What the replay found: in place of the PATH and locale that it restored, and of the files. */
export type Found = {
  readonly path: string | null;
  readonly locale: string | null;
  readonly dirty_hash: string | null;
};

export function driftOf(recorded: Span, now: Span, found: Found): readonly ReplayDrift[] {
  const [was, is] = [factsOf(recorded), { ...factsOf(now), ...found }];
  const parts = [...Object.keys(was), ...Object.keys(is)];
  return [...new Set(parts)].flatMap((what) => {
    const [then, today] = [was[what] ?? null, (is as Facts)[what] ?? null];
    return then === today || isUnknown(what, then, today) ? [] : [{ what, recorded: then, now: today }];
  });
}

/** A state of files that nobody looked at is no difference: it is only not known. */
function isUnknown(what: string, then: string | null, today: string | null): boolean {
  return what === "dirty_hash" && (then === null || today === null);
}

function factsOf({ policy_id, policy_hash, policy_commit, replay_context: context, isolation }: Span): Facts {
  const image = context?.world_image ?? null;
  return {
    policy_id,
    policy_hash,
    policy_commit,
    init_hash: image?.init_hash ?? null,
    filter_hash: image?.filter_hash ?? null,
    os_release: image?.os_release ?? null,
    kernel: image?.kernel ?? null,
    project_commit: context?.project_commit ?? null,
    dirty_hash: context?.dirty_hash ?? null,
    env_hash: context?.env_hash ?? null,
    path: context?.path ?? null,
    locale: context?.locale ?? null,
    umask: context?.umask ?? null,
    cwd: context?.cwd ?? null,
    ...isolationFacts(isolation),
  };
}

/** A replay always has an overlay: that is how nothing of it stays. */
function isolationFacts(isolation: Isolation | null): Facts {
  const words = Object.entries(isolation ?? {}).filter(([part]) => part !== "overlay");
  return Object.fromEntries(words.map(([part, word]) => [`isolation.${part}`, word]));
}
