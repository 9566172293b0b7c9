import type { PolicyDocument } from "../../schemas/generated/types.ts";

/**
 * Keys that this version does not carry out as they are written.
 *
 * - `unbuilt`: what it asks for does not exist. Refused in either mode.
 * - `stricter`: without it less is possible than the policy says. Noted.
 * - `vector`: the answer's `isolation` says whether it is there, and `world.require` insists on it. Noted.
 * - `nothing`: no command is decided or run otherwise. Noted.
 */
interface NotYetRow {
  readonly key: string;
  readonly effect: "unbuilt" | "stricter" | "vector" | "nothing";
  /** Does the document ask for it? */
  readonly asked: (document: PolicyDocument) => boolean;
  readonly sentence: string;
}

const ROWS: readonly NotYetRow[] = [
  {
    key: "net.dns.pinned",
    effect: "stricter",
    asked: ({ net }) => net?.dns?.pinned === false,
    sentence: "net.dns.pinned: false lifts nothing: names are answered by the world's own stub alone",
  },
  {
    key: "world.isolate_network",
    effect: "unbuilt",
    asked: ({ world }) => world?.isolate_network === false,
    sentence: "world.isolate_network: false (the host's network) is not built yet",
  },
  {
    key: "world.limits",
    effect: "vector",
    asked: ({ world }) => Object.keys(world?.limits ?? {}).length > 0,
    sentence:
      "world.limits: cpu and memory need a cgroup controller, pids and disk hold without; the isolation vector says what is there, `world status` which limits hold, and world.require: [cgroup] insists on all",
  },
  {
    key: "privacy",
    effect: "nothing",
    asked: ({ privacy }) => privacy !== undefined,
    sentence: "privacy concerns the index of files, which is not built yet",
  },
];

export interface NotYet {
  readonly notes: readonly string[];
  readonly refusals: readonly { readonly path: readonly string[]; readonly message: string }[];
}

/** What to say about a document, and what to refuse it for. */
export function notYet(document: PolicyDocument): NotYet {
  const asked = ROWS.filter((row) => row.asked(document));
  const refused = asked.filter((row) => row.effect === "unbuilt");
  return {
    notes: asked.filter((row) => !refused.includes(row)).map((row) => row.sentence),
    refusals: refused.map((row) => ({ path: row.key.split("."), message: refusal(row) })),
  };
}

function refusal(row: NotYetRow): string {
  return `Cannot load a policy with ${row.key} set so: ${row.sentence}`;
}
