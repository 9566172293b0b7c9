import { type ChildProcess, spawn } from "node:child_process";
import type { Duplex } from "node:stream";
import { FRAME, TAG } from "../../schemas/generated/frames.ts";
import { abortError, WorldUnavailable } from "../model/unavailable.ts";
import type { MountPlan } from "../plan/mounts.ts";
import type { SeccompPrograms } from "../seccomp/programs.ts";
import type { Openness } from "../seccomp/table.ts";
import { errnoName } from "../model/errno.ts";
import { decodeFields, decodeNumber } from "./frame-codec.ts";
import { FrameReader } from "./frame-reader.ts";
import { encodeSetup, readReady } from "./setup.ts";
import { isInOuterSandbox, OUTER_SANDBOX } from "./outer-sandbox.ts";
import { isScarce, SCARCE_HINT } from "./scarce.ts";
import type { NamespaceName } from "./namespaces.ts";

/** Input of a launch. Init makes no world when the kernel rejects a filter. */
export type LaunchPlan = SeccompPrograms & {
  /** The `substrate-init` program. */
  readonly init: string;
  /** The namespaces to unshare. */
  readonly namespaces: readonly NamespaceName[];
  /** The namespaces that commands may make. */
  readonly openness: Openness;
  readonly uid: number;
  readonly gid: number;
  readonly plan: MountPlan;
  /** Real path of the folder whose changes init records; undefined: nothing is recorded. */
  readonly recorded: string | undefined;
  /** Each `NAME=value`. */
  readonly limits: readonly string[];
  /** Whether commands may use telemetry. */
  readonly reports: boolean;
  /**
   * Process that holds the network namespace to join; `host`: the world keeps the host's; undefined: the world makes its own.
   */
  readonly network: number | "host" | undefined;
  /** Descriptor of the world's cgroup folder; the caller closes it. */
  readonly cgroup: number | undefined;
};

/** The process that holds a world: a child of the broker, or a container. */
export type Holder = {
  /** Process id on the host. */
  readonly pid: number;
  /** Settles with the cause when the holder and its processes are gone; never rejects. */
  readonly ended: Promise<string>;
  /** Kills the holder, if closing the channel had no effect. */
  readonly kill: () => void;
};

/** A world whose init has answered READY. */
export type Launched = {
  readonly holder: Holder;
  readonly channel: Duplex;
  /** Bits of the unshared namespaces. */
  readonly achieved: number;
  /** Folders without a watch for new denied names: the host is out of inotify watches. */
  readonly unwatched: number;
  /** Veils below which changes of the host appear late. */
  readonly unrefreshed: number;
  /** Whether the kernel notifies init of each program start. */
  readonly gated: boolean;
  /** The limits of the plan that init set and read back, each `NAME=value`. */
  readonly limits: readonly string[];
};

/** A way to start init. */
export interface Launcher {
  /** The backend's name in replies. */
  readonly name: string;
  /** Whether its worlds have a user namespace; undefined: determined by the first world. */
  readonly userNamespace: boolean | undefined;
  /** Why its worlds get no cgroup from the broker; undefined: cgroups are possible. */
  readonly cgroupRefusal: string | undefined;
  /** Why its worlds have only their own localhost; undefined: they join a network helper's namespace. */
  readonly networkRefusal: string | undefined;
  /** Throws {@link LaunchFailed} or {@link WorldUnavailable}; no part of the world remains then. */
  launch(id: string, plan: LaunchPlan, signal: AbortSignal): Promise<Launched>;
}

/** Starts init as a child of the broker. */
export const DIRECT: Launcher = {
  name: "linux",
  userNamespace: undefined,
  cgroupRefusal: undefined,
  networkRefusal: undefined,
  launch: (_id, plan, signal) => launchInit(plan, signal),
};

/** Init's READY frame; `pid` is the host's process id of PID 1 in the world. */
export type Ready = Pick<Launched, "achieved" | "unwatched" | "unrefreshed" | "gated" | "limits"> & {
  readonly pid: number;
};

const HINT =
  "Run 'substrate world doctor': it tests what a world needs from this host and prints how to mend it";
const LOG_HINT =
  "world.seccomp: log needs seccomp notifications, and no other sandbox that uses them around the broker; use world.seccomp: enforce";

/** The step at which init failed to make the world, its subject, and the kernel's error. */
export class LaunchFailed extends WorldUnavailable {
  readonly step: string;
  readonly path: string;
  readonly errno: string;

  constructor(step: string, path: string, errno: string) {
    const about = path === "" ? "" : ` on '${path}'`;
    super(`Cannot make a world: ${step}${about} failed with ${errno}`, hintFor(step, errno));
    this.step = step;
    this.path = path;
    this.errno = errno;
  }
}

/** Returns the hint for a failed step: EPERM alone does not tell a person that a sandbox around the broker refuses. */
function hintFor(step: string, errno: string): string {
  if (step === "seccomp log") return LOG_HINT;
  const needsRight = step.startsWith("unshare") || step.startsWith("mount");
  return needsRight && errno === "EPERM" && isInOuterSandbox() ? OUTER_SANDBOX : HINT;
}

const BUILD_HINT = "Run 'npm run build' in the checkout, or install the package again";

/**
 * Errors with which kernels refuse namespaces or their use: permission (EPERM; EACCES from AppArmor and SELinux), a limit of zero
 * (ENOSPC), or a missing kernel option (EINVAL, ENOSYS).
 */
const REFUSALS = ["EPERM", "EACCES", "ENOSPC", "EINVAL", "ENOSYS"];

/** Whether the host refuses worlds to the broker permanently. A temporary shortage is not a refusal. */
export function isHostRefusal(error: unknown): boolean {
  return error instanceof LaunchFailed && error.step !== "protocol" && REFUSALS.includes(error.errno);
}

/**
 * Starts init, sends the plan and waits until init is ready. The process is detached so that a terminal's Ctrl-C stops the broker
 * in its own order, not every world at once. Throws {@link LaunchFailed} or {@link WorldUnavailable}; init is gone then.
 */
export async function launchInit(plan: LaunchPlan, signal: AbortSignal): Promise<Launched> {
  signal.throwIfAborted();
  const child = spawn(plan.init, [], {
    stdio: ["ignore", "ignore", "pipe", "pipe", ...(plan.cgroup === undefined ? [] : [plan.cgroup])],
    env: {},
    cwd: "/",
    detached: true,
  });
  const holder = holderOf(child);
  const complaint = collectComplaint(child);
  // When descriptors run out, Node leaves `stdio` undefined, despite its type, and emits the error one turn later.
  const channel = (child.stdio as ChildProcess["stdio"] | undefined)?.[3] as Duplex | null | undefined;
  try {
    const ready = await firstAnswer(channel, plan, signal, (fail) => {
      const failWith = (cause: string, code?: string): void =>
        fail(`${cause}${complaint()}`, isScarce(code) ? SCARCE_HINT : BUILD_HINT);
      child.once("error", (error: NodeJS.ErrnoException) => failWith(error.message, error.code));
      // Not "exit", which can precede init's last FAILED frame.
      child.once("close", (code, name) => failWith(`it ended with ${name ?? `exit code ${code}`}`));
    });
    if (channel === null || channel === undefined)
      throw new WorldUnavailable("Init has no channel", "Report this as a bug");
    return { ...ready, holder, channel };
  } catch (error) {
    channel?.destroy();
    child.kill("SIGKILL");
    throw error;
  }
}

/**
 * Sends the plan and waits for init's answer. `watch` receives a callback for a failure found by the caller. Throws
 * {@link LaunchFailed} or {@link WorldUnavailable}.
 */
export function firstAnswer(
  channel: Duplex | null | undefined,
  plan: LaunchPlan,
  signal: AbortSignal,
  watch: (fail: (cause: string, hint: string) => void) => void,
): Promise<Ready> {
  return new Promise((resolve, reject) => {
    const settle = (act: () => void): void => {
      signal.removeEventListener("abort", onAbort);
      channel?.removeListener("data", onData);
      act();
    };
    const onAbort = (): void => settle(() => reject(tooLate(signal)));
    const fail = (cause: string, hint = "Report this as a bug"): void =>
      settle(() => reject(new WorldUnavailable(`Cannot start '${plan.init}': ${cause}`, hint)));
    const reader = new FrameReader({
      onBytes: () => fail("it sent output before it was ready"),
      onFrame: (type, _id, payload) => {
        if (type === FRAME.READY) settle(() => resolve(readReady(payload)));
        else if (type === FRAME.FAILED) settle(() => reject(launchFailure(payload)));
        else fail(`it answered with frame ${type}`);
      },
    });
    const onData = (chunk: Buffer): void => {
      try {
        reader.push(chunk);
      } catch (error) {
        fail(`it sent an invalid frame: ${error instanceof Error ? error.message : String(error)}`);
      }
    };
    signal.addEventListener("abort", onAbort, { once: true });
    watch(fail);
    channel?.on("error", (error) => fail(error.message));
    channel?.on("data", onData);
    channel?.write(encodeSetup(plan));
  });
}

function launchFailure(payload: Buffer): LaunchFailed {
  const fields = new Map(decodeFields(payload));
  const errno = fields.get(TAG.ERRNO);
  return new LaunchFailed(
    fields.get(TAG.STEP)?.toString("utf8") ?? "unknown step",
    fields.get(TAG.PATH)?.toString("utf8") ?? "",
    errnoName(errno === undefined ? 0 : decodeNumber(errno)),
  );
}

/** Converts the abort of a launch to an error: too slow, or the broker is stopping. No world is left. */
export function tooLate(signal: AbortSignal): WorldUnavailable {
  const reason = abortError(signal);
  if (reason instanceof WorldUnavailable) return reason;
  return new WorldUnavailable(
    "Cannot make a world: it was not ready in time",
    "Try again when the host is less busy",
    { cause: reason },
  );
}

function holderOf(child: ChildProcess): Holder {
  const ended = new Promise<string>((resolve) => {
    child.once("exit", (code, signal) => resolve(`its init ended with ${signal ?? `exit code ${code}`}`));
  });
  return { pid: child.pid ?? 0, ended, kill: () => void child.kill("SIGKILL") };
}

/** Collects the first 4 KiB of init's stderr for the error message. */
function collectComplaint(child: ChildProcess): () => string {
  let text = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    if (text.length < 4096) text += chunk.toString("utf8");
  });
  return () => (text.trim() === "" ? "" : ` (${text.trim().slice(0, 4096)})`);
}
