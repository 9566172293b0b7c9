import { isRefusal, type Refusal, refusal } from "../model/refusal.ts";
import { constants } from "node:os";
import type { FsDiff, Isolation, Notice } from "../../schemas/generated/types.ts";
import type { Ending, World } from "../../world/backend.ts";
import { join } from "node:path";
import { fileLists } from "../policy/files/file-lists.ts";
import { type Job, scopesOfJob } from "../model/job.ts";
import { absolutePath, isWithin } from "../policy/files/path-denials.ts";
import type { CommandNetwork } from "../network/command-network.ts";
import type { Outcome } from "../model/outcome.ts";
import type { Ran } from "../worlds/run.ts";

/** Exit codes of a shell for a missing program, and for a program that cannot be executed (POSIX, XCU 2.8.2). */
const NOT_FOUND = 127;
const NOT_EXECUTABLE = 126;

/** 128 + SIGKILL. */
const KILLED = 137;

/** Results of a command that ran. */
export type Result = {
  readonly ran: Ran;
  readonly changes: FsDiff;
  readonly notices: Notice[];
  /** Advice about held changes. */
  readonly hint: string | undefined;
  /** Why the broker ended the command early, as a sentence. */
  readonly cutShort: string | undefined;
  /** Undefined when the world has no network. */
  readonly network: CommandNetwork | undefined;
};

type End = { readonly exit: number; readonly signal: string | null; readonly complaint: string };

/**
 * Builds the reply of a command that ran, with the reason for an early end; or a refusal when the command could not start or lost
 * its world.
 */
export function replyOf(
  job: Job,
  world: World,
  { ran, changes, notices, hint, cutShort, network }: Result,
): Outcome {
  const end = endOf(ran.ending);
  if (isRefusal(end)) return { kind: "refused", error: { ...end, span_id: job.span } };
  const { verdict, mode, rule } = job.decision;
  const reasons = [
    ...(cutShort === undefined ? [] : [cutShort]),
    ...(end.exit === 0 ? [] : networkWords(network)),
  ];
  const text = `${end.complaint}${reasons.map((reason) => `substrate: ${reason}\n`).join("")}`;
  // The client's terminal is still raw, and its kernel adds no carriage return.
  const isTerminal = job.live?.input?.terminal !== undefined;
  const complaint = Buffer.from(isTerminal ? text.replaceAll("\n", "\r\n") : text);
  // Hash and length of the stream cover the returned bytes, including the complaint.
  ran.stderr.count(complaint);
  return {
    kind: "ran",
    complaint,
    reply: {
      span_id: job.span,
      world_id: world.id,
      session_id: job.session.id,
      agent_id: job.agent,
      policy_id: job.effective.id,
      policy_hash: job.effective.hash,
      decision: { verdict, mode, rule },
      exit: end.exit,
      signal: end.signal,
      timed_out: ran.timedOut,
      duration_ms: Math.round(ran.durationMs * 1000) / 1000,
      stdout_b64: ran.stdout.bytes().toString("base64"),
      stderr_b64: Buffer.concat([ran.stderr.bytes(), complaint]).toString("base64"),
      stdout_bytes: ran.stdout.total,
      stderr_bytes: ran.stderr.total,
      truncated: ran.stdout.truncated || ran.stderr.truncated,
      scopes_used: scopesOf(job, changes, network),
      fs_diff: changes,
      usage: usageOf(ran.ending, world, network),
      notices,
      hint: hint ?? null,
      isolation: world.isolation,
    },
  };
}

const MAX_NETWORK_WORDS = 3;

/** Explains network failures to a failed command: programs only report a missing name, a refused or a reset connection. */
function networkWords(network: CommandNetwork | undefined): readonly string[] {
  const refused = someOf(network?.refused ?? [], "were refused");
  const ask =
    "To reach a host, ask for it with POST /v1/request_scopes and 'net:NAME:PORT', or ask the operator to run 'substrate policy allow net NAME'";
  return [...refused, ...(refused.length === 0 ? [] : [ask]), ...someOf(network?.failed() ?? [], "failed")];
}

function someOf(sentences: readonly string[], what: string): readonly string[] {
  const more = sentences.length - MAX_NETWORK_WORDS;
  return [...sentences.slice(0, MAX_NETWORK_WORDS), ...(more > 0 ? [`${more} more ${what} like these`] : [])];
}

/**
 * Resource usage. Bytes are 0, not null, in a world without a network: no byte can have left or arrived. They are null where the
 * network is not isolated: nobody has counted them.
 */
export function usageOf(
  ending: Ending,
  { isolation }: { readonly isolation: Isolation | null },
  network: CommandNetwork | undefined,
): {
  cpu_ms: number | null;
  memory_peak_bytes: number | null;
  egress_bytes: number | null;
  ingress_bytes: number | null;
  processes: number | null;
} {
  const usage = "usage" in ending ? ending.usage : { cpuMs: null, memoryPeakBytes: null, processes: null };
  const unseen = isolation?.net.startsWith("off") === true ? null : 0;
  const traffic = network === undefined ? { egress: unseen, ingress: unseen } : network.traffic;
  return {
    cpu_ms: usage.cpuMs,
    memory_peak_bytes: usage.memoryPeakBytes,
    egress_bytes: traffic?.egress ?? null,
    ingress_bytes: traffic?.ingress ?? null,
    processes: usage.processes,
  };
}

/**
 * Lists scopes used: the token's scopes, the project's top folders written to, and the opened places written to outside the
 * project.
 */
export function scopesOf(job: Job, changes: FsDiff, network: CommandNetwork | undefined): string[] {
  const paths = [...changes.writes, ...changes.mods, ...changes.deletes, ...changes.dirs];
  const tops = new Set(paths.map((path) => path.split("/")[0] ?? path));
  const written = [...tops].sort().map((top) => `fs.write:${join(job.place.project, top)}`);
  const outside = (changes.outside ?? []).map((path) => `fs.write:${openedAround(path, job)}`);
  return [
    ...new Set([
      ...(scopesOfJob(job)?.texts ?? []),
      ...written,
      ...[...new Set(outside)].sort(),
      ...(network?.scopes ?? []),
    ]),
  ];
}

/** Finds the smallest place around a path that `fs.write`, the call's token or the project's git folder opens. */
function openedAround(path: string, job: Job): string {
  const { effective, place, environment, site } = job;
  const folders = { project: place.project, home: environment.variables["HOME"] ?? "/" };
  const granted = (scopesOfJob(job)?.texts ?? []).filter((text) => text.startsWith("fs.write:"));
  const listed = effective.policies.flatMap(({ document }) => fileLists(document).write);
  const git = site.git?.folder === undefined ? [] : [site.git.folder.path];
  const opened = [...listed, ...git, ...granted.map((text) => text.slice("fs.write:".length))]
    .map((scope) => absolutePath(scope, folders).replace(/\/\*\*$/, ""))
    .filter((scope) => scope !== "" && isWithin(path, scope));
  return opened.reduce((one, other) => (one === path || other.length > one.length ? other : one), path);
}

function endOf(ending: Ending): End | Refusal {
  switch (ending.kind) {
    case "exited":
      return { exit: ending.code, signal: null, complaint: "" };
    case "signalled":
      return { exit: 128 + signalNumber(ending.signal), signal: ending.signal, complaint: "" };
    case "not_started":
      return notStarted(ending.step, ending.path, ending.errno);
    case "world_lost":
      // The end of a world kills everything inside, whether the command itself, a limit or an operator ended the world.
      return { exit: KILLED, signal: "SIGKILL", complaint: `substrate: the world ended: ${ending.cause}\n` };
  }
}

function notStarted(step: string, path: string, errno: string): End | Refusal {
  if (step === "execve" && (errno === "ENOENT" || errno === "ENOTDIR")) {
    return { exit: NOT_FOUND, signal: null, complaint: `substrate: ${path}: command not found\n` };
  }
  if (step === "execve" && (errno === "EACCES" || errno === "ENOEXEC")) {
    return {
      exit: NOT_EXECUTABLE,
      signal: null,
      complaint: `substrate: ${path}: cannot be executed (${errno})\n`,
    };
  }
  if (step === "chdir") {
    return refusal(
      "invalid_request",
      `Cannot enter '${path}' inside the world: ${errno}`,
      "Use a cwd that the policy's fs.read covers",
    );
  }
  if (errno === "E2BIG") {
    return refusal(
      "invalid_request",
      "argv and env together are longer than the kernel accepts",
      "Send less in env, or write data to a file",
    );
  }
  if (errno === "EAGAIN" || errno === "ENOMEM" || errno === "EMFILE" || errno === "ENOSPC") {
    return refusal(
      "busy",
      `Cannot start another process within the limits of the world or the host: ${step} failed with ${errno}`,
      "Wait for running commands to end, then try again",
      { retry_after_ms: 1000 },
    );
  }
  return refusal(
    "internal",
    `The command could not be started: ${step} on '${path}' failed with ${errno}`,
    "See the broker's log ('substrate broker logs')",
  );
}

function signalNumber(name: string): number {
  return name in constants.signals ? constants.signals[name as NodeJS.Signals] : 0;
}
