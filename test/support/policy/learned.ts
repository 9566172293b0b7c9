/** `policy learn` on spans that a test makes up, without a trace or a broker. */
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { parse } from "yaml";
import { Observations } from "../../../broker/learn/observations.ts";
import { type Proposal, propose } from "../../../broker/learn/propose.ts";
import type { PathKind } from "../../../broker/learn/write-fates.ts";
import { parseCase } from "../../../broker/policy-cases/parse-case.ts";
import { parsePolicy } from "../../../broker/policy/index.ts";
import type { Span, Verdict } from "../../../schemas/generated/types.ts";

export const FOLDERS = { project: "/home/ann/app", home: "/home/ann" };
export const WHERE = { ...FOLDERS, cwd: FOLDERS.project };
const EXAMPLES = parse(
  readFileSync(join(import.meta.dirname, "../../../schemas/examples/span.yaml"), "utf8"),
  { merge: true, maxAliasCount: -1 },
) as { readonly good: { readonly "command-complete": Span } };
const GOOD = EXAMPLES.good["command-complete"];

export type Told = {
  readonly cmd?: string;
  readonly argv?: readonly string[];
  readonly verdict?: Verdict;
  readonly writes?: readonly string[];
  readonly redacted?: boolean;
  readonly cwd?: string;
  readonly agent?: string;
  readonly ts?: string;
  /** Instead of a command: a connection to `host:port` that reached a server, or why it did not. */
  readonly to?: string;
  readonly failed?: string;
  /** Instead of a command: the file of a program that a running command started, and whether its words were cut. */
  readonly program?: string;
  readonly cut?: boolean;
};

/** The last line of a command that the policy `p` would have stopped. */
export function span(told: Told, index = 0): Span {
  if (told.to !== undefined) return connection(told, told.to, index);
  if (told.program !== undefined) return program(told, told.program, index);
  const cmd = told.argv === undefined ? (told.cmd ?? "true") : JSON.stringify(told.argv);
  return {
    ...GOOD,
    event_type: "command_complete",
    policy_id: "p",
    span_id: `spn_${index}`,
    agent_id: told.agent ?? "a",
    ts: told.ts ?? `2026-01-0${1 + (index % 9)}T00:00:00.000Z`,
    cmd,
    cwd: told.cwd ?? FOLDERS.project,
    decision: { verdict: told.verdict ?? "would_deny", mode: "observe", rule: null },
    redacted: told.redacted === true ? [{ kind: "token", place: "cmd" }] : [],
    fs_diff: GOOD.fs_diff === null ? null : { ...GOOD.fs_diff, world_only: [...(told.writes ?? [])] },
  };
}

function program(told: Told, path: string, index: number): Span {
  const { program: _path, argv: _argv, cut = false, ...rest } = told;
  const started_at = "2026-01-01T00:00:00.000000Z";
  return {
    ...span({ ...rest, cmd: "make" }, index),
    event_type: "violation",
    outcome: null,
    fs_diff: null,
    redacted: [],
    violation: { kind: "program", subject: told.cmd ?? JSON.stringify(told.argv) },
    program: { path, pid: 7, started_at, cut, replaced: false },
  };
}

function connection(told: Told, to: string, index: number): Span {
  const [host = "", port] = to.split(":");
  const { to: _to, ...rest } = told;
  const reason = told.failed ?? null;
  return {
    ...span({ ...rest, verdict: told.verdict ?? "would_deny" }, index),
    event_type: "connection",
    cmd: null,
    fs_diff: null,
    connection: {
      host,
      port: Number(port),
      address: reason === null ? "203.0.113.1" : null,
      program: "curl",
      pid: 7,
      ended: reason === null ? "closed" : "failed",
      reason,
    },
  };
}

export function policy(text: string) {
  const loaded = parsePolicy(text, "p.yaml");
  if ("problems" in loaded) throw new Error(loaded.problems.map((problem) => problem.text).join("\n"));
  return loaded.ok;
}

type Surroundings = {
  readonly generalise?: boolean;
  readonly kinds?: Readonly<Record<string, PathKind>>;
  readonly cases?: readonly string[];
};

export function attempt(
  text: string,
  told: readonly Told[],
  { generalise, kinds = {}, cases = [] }: Surroundings = {},
) {
  const observations = new Observations({ policyId: "p", agent: undefined, since: undefined });
  for (const [index, one] of told.entries()) observations.add(span(one, index));
  return propose({
    policy: policy(text),
    text,
    file: "p.yaml",
    observed: observations.all(),
    cases: cases.map((one) => {
      const parsed = parseCase(one, "case.yaml", "DENY");
      if ("problems" in parsed) throw new Error(parsed.problems[0]?.text);
      return parsed.ok;
    }),
    whereOf: (cwd) => ({ ...FOLDERS, cwd }),
    kindOf: (path) => kinds[path] ?? (basename(path).includes(".") ? "file" : "folder"),
    generalise: generalise === true,
  });
}

export function learn(...from: Parameters<typeof attempt>): Proposal {
  const proposal = attempt(...from);
  if ("wrong" in proposal) throw new Error(proposal.wrong);
  return proposal;
}

export function values(proposal: Proposal): readonly string[] {
  return proposal.additions.map(({ list, value }) => `${list} ${value}`);
}

export function fates(proposal: Proposal): readonly string[] {
  return proposal.commands.map(({ fate }) => fate.kind);
}

/** Beside a list of all that may run. */
export const LISTED = `id: p
name: P
mode: observe
commands:
  allowed: # what runs
    - "git status" # always
    - ls *
  denied: ["sudo *"]
`;
