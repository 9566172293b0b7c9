import { type ChildProcess, spawn } from "node:child_process";
import type { Duplex } from "node:stream";
import { FRAME, TAG } from "../../schemas/generated/frames.ts";
import { abortError, WorldUnavailable } from "../model/unavailable.ts";
import type { MountPlan } from "../plan/mounts.ts";
import type { SeccompPrograms } from "../seccomp/programs.ts";
import { errnoName } from "../model/errno.ts";
import { decodeFields, decodeNumber } from "./frame-codec.ts";
import { FrameReader } from "./frame-reader.ts";
import { encodeSetup, readReady } from "./setup.ts";
import { isInOuterSandbox, OUTER_SANDBOX } from "./outer-sandbox.ts";
import { isScarce, SCARCE_HINT } from "./scarce.ts";
import type { NamespaceName } from "./namespaces.ts";

/** Init makes no world when the kernel does not take a filter. */
export type LaunchPlan = SeccompPrograms & {
  /** The `substrate-init` program. */
  readonly init: string;
  /** The namespaces to unshare. */
  readonly namespaces: readonly NamespaceName[];
  readonly uid: number;
  readonly gid: number;
  readonly plan: MountPlan;
  /** Real path of the folder below which changes are told; undefined: nowhere. */
  readonly recorded: string | undefined;
  /** `NAME=value` each. */
  readonly limits: readonly string[];
  /** Whether commands may be listened to. */
  readonly reports: boolean;
  /** Process that holds the network namespace to join; undefined: the world has one of its own. */
  readonly network: number | undefined;
  /** Descriptor of the folder of the world's cgroup; the caller closes it. */
  readonly cgroup: number | undefined;
};

/** What holds a world on the outside: a child of the broker, or a container. */
export type Holder = {
  /** Process id on the host. */
  readonly pid: number;
  /** Settles with the cause when nothing of it is left; never rejects. */
  readonly ended: Promise<string>;
  /** Ends it when closing the channel did not. */
  readonly kill: () => void;
};

/** A world's init that has answered READY. */
export type Launched = {
  readonly holder: Holder;
  readonly channel: Duplex;
  /** Bits of the namespaces that were unshared. */
  readonly achieved: number;
  /** Folders in which a denied name could appear unnoticed: the host has no more inotify watches. */
  readonly unwatched: number;
  /** Veils below which a change of the host is seen late. */
  readonly unrefreshed: number;
  /** The kernel tells a listener of each start of a program. */
  readonly gated: boolean;
  /** Those of the plan's limits that init itself set and read back, `NAME=value` each. */
  readonly limits: readonly string[];
};

/** A way to start init. */
export interface Launcher {
  /** The backend's name in replies. */
  readonly name: string;
  /** Whether its worlds have a user namespace; undefined: found out by the first world, by trying. */
  readonly userNamespace: boolean | undefined;
  /** Why its worlds get no cgroup of ours; undefined: they may. */
  readonly cgroupRefusal: string | undefined;
  /** Why its worlds have nothing but their own localhost; undefined: they join a network that is made for them. */
  readonly networkRefusal: string | undefined;
  /** Throws {@link LaunchFailed} or {@link WorldUnavailable}; in each case nothing is left of the world. */
  launch(id: string, plan: LaunchPlan, signal: AbortSignal): Promise<Launched>;
}

/** Init as a child of the broker. */
export const DIRECT: Launcher = {
  name: "linux",
  userNamespace: undefined,
  cgroupRefusal: undefined,
  networkRefusal: undefined,
  launch: (_id, plan, signal) => launchInit(plan, signal),
};

/** What init said when it was ready; `pid` is the host's name for PID 1 of the world. */
export type Ready = Pick<Launched, "achieved" | "unwatched" | "unrefreshed" | "gated" | "limits"> & {
  readonly pid: number;
};

const HINT = "Run 'substrate world doctor': it tries what a world needs of this host, and prints the mend";
const LOG_HINT =
  "world.seccomp: log needs a kernel that notifies of system calls, and a broker that nobody else listens to (another sandbox); use world.seccomp: enforce";

/** Why init could not make the world: the step, what it was about, and the kernel's word for it. */
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

/** The kernel's EPERM alone does not tell a person that it is the sandbox around them that says no. */
function hintFor(step: string, errno: string): string {
  if (step === "seccomp log") return LOG_HINT;
  const needsRight = step.startsWith("unshare") || step.startsWith("mount");
  return needsRight && errno === "EPERM" && isInOuterSandbox() ? OUTER_SANDBOX : HINT;
}

/**
 * Errors with which kernels refuse namespaces, or what is done in a new one, to whoever asks: by permission (EPERM; EACCES
 * from AppArmor and SELinux), by a limit of none (ENOSPC), or because they were built without (EINVAL, ENOSYS).
 */
const REFUSALS = ["EPERM", "EACCES", "ENOSPC", "EINVAL", "ENOSYS"];

/** Whether this host does not let the broker make worlds, now or later. What is scarce for a moment is no refusal. */
export function isHostRefusal(error: unknown): boolean {
  return error instanceof LaunchFailed && error.step !== "protocol" && REFUSALS.includes(error.errno);
}

/**
 * Starts init, sends the plan and waits until it is ready. The process is detached so that a terminal's Ctrl-C
 * ends the broker's own way and not every world at once. Throws {@link LaunchFailed} or {@link WorldUnavailable};
 * in each case init is gone.
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
  // When no descriptor is left Node makes no `stdio` at all, whatever its types say, and tells why a turn later.
  const channel = (child.stdio as ChildProcess["stdio"] | undefined)?.[3] as Duplex | null | undefined;
  try {
    const ready = await firstAnswer(channel, plan, signal, (fail) => {
      const failWith = (cause: string, code?: string): void =>
        fail(`${cause}${complaint()}`, isScarce(code) ? SCARCE_HINT : "Run 'npm run build' in the checkout");
      child.once("error", (error: NodeJS.ErrnoException) => failWith(error.message, error.code));
      // Not "exit", which can overtake the FAILED that init sent before it ended.
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
 * Sends the plan and waits for init's answer. `watch` gets what to call when whoever started init learns that no answer
 * will come. Throws {@link LaunchFailed} or {@link WorldUnavailable}.
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
        fail(`it does not speak our frames: ${error instanceof Error ? error.message : String(error)}`);
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

/** A launch that was given up leaves no world, whatever the reason: too slow, or the broker is stopping. */
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

/** The first 4 KiB of what init says on stderr, for the error message. */
function collectComplaint(child: ChildProcess): () => string {
  let text = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    if (text.length < 4096) text += chunk.toString("utf8");
  });
  return () => (text.trim() === "" ? "" : ` (${text.trim().slice(0, 4096)})`);
}
