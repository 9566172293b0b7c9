/** Runs trials: `substrate-init` with tiny plans, its probes, and other programs. */
import { execFile } from "node:child_process";
import type { HostFinding } from "./face.ts";
import { errnoName } from "../model/errno.ts";
import { launchInit, LaunchFailed } from "../linux/launch.ts";
import type { NamespaceName } from "../linux/namespaces.ts";
import type { MountOperation } from "../plan/operations.ts";

export type Inits = { readonly init: string; readonly uid: number; readonly gid: number };

/** How a program ended; `code` is null if the program did not start or was killed by a signal. */
export type Ended = {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Errno name, if the program did not start. */
  readonly unstarted: string | undefined;
};

/** `BPF_RET | BPF_K` with SECCOMP_RET_ALLOW: the smallest filter. */
const ALLOW_ALL = Uint8Array.from([0x06, 0, 0, 0, 0, 0, 0xff, 0x7f]);

const NAMESPACES: readonly NamespaceName[] = ["mount", "pid"];

export class Trials {
  readonly inits: Inits;
  #own: Promise<boolean> | undefined;

  constructor(inits: Inits) {
    this.inits = inits;
  }

  /** Makes a world of a few namespaces and ends it. Throws the errors of `launchInit`. */
  async launch(
    namespaces: readonly NamespaceName[],
    mounts: readonly MountOperation[],
    signal: AbortSignal,
    filter: Uint8Array = ALLOW_ALL,
  ): Promise<void> {
    const { holder, channel } = await launchInit(
      {
        ...this.inits,
        namespaces,
        openness: "closed",
        plan: {
          mounts,
          denied: [],
          zones: [],
          homePlaces: [],
          sockets: [],
          unhidden: 0,
          bare: [],
          beyond: 0,
          opened: [],
          kept: [],
        },
        filter,
        guard: undefined,
        commandFilter: undefined,
        recordFilter: undefined,
        recorded: undefined,
        limits: [],
        cgroup: undefined,
        // A world has a network namespace of its own or says that it keeps the host's.
        network: namespaces.includes("net") ? undefined : "host",
        reports: false,
      },
      signal,
    );
    channel.destroy();
    await holder.ended;
  }

  /** Adds a user namespace if this user needs one. */
  async launchAsUsual(
    namespaces: readonly NamespaceName[],
    mounts: readonly MountOperation[],
    signal: AbortSignal,
  ): Promise<void> {
    const own = await this.needsUserNamespace(signal);
    const all = [...NAMESPACES, ...namespaces];
    await this.launch(own ? ["user", ...all] : all, mounts, signal);
  }

  /** Whether this user needs a user namespace to make any other namespace; tried once. */
  needsUserNamespace(signal: AbortSignal): Promise<boolean> {
    this.#own ??= this.launch(NAMESPACES, [], signal).then(
      () => false,
      (error: unknown) => {
        if (error instanceof LaunchFailed) return error.step.startsWith("unshare") && error.errno === "EPERM";
        this.#own = undefined;
        throw error;
      },
    );
    return this.#own;
  }

  /** Runs one of init's probes, for features outside every plan. */
  async probe(words: readonly string[], signal: AbortSignal): Promise<Probed> {
    const ended = await runProgram([this.inits.init, ...words], signal);
    const [word, step, ...rest] = ended.stdout.trim().split(" ");
    if (ended.code === 0 && word === "ok") return { ok: true, words: [step ?? "", ...rest] };
    if (word === "failed")
      return { ok: false, step: step ?? "unknown", errno: errnoName(Number(rest[0] ?? 0)) };
    const how = ended.unstarted ?? `exit code ${ended.code}`;
    return { ok: false, step: `substrate-init ${words[0]}`, errno: how };
  }
}

export type Probed =
  | { readonly ok: true; readonly words: readonly string[] }
  | { readonly ok: false; readonly step: string; readonly errno: string };

/** Runs a program to its end, with English messages. Never rejects. */
export function runProgram(argv: readonly string[], signal: AbortSignal, stdin = ""): Promise<Ended> {
  const [program = "", ...rest] = argv;
  const env = { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" };
  return new Promise((resolve) => {
    const options = { env, cwd: "/", signal, killSignal: "SIGKILL" as const };
    const child = execFile(program, rest, options, (error, stdout, stderr) => {
      const { code } = error ?? { code: 0 };
      const started = typeof code === "number";
      resolve({ code: started ? code : null, stdout, stderr, unstarted: started ? undefined : String(code) });
    });
    // A program may end without reading its input.
    child.stdin?.on("error", () => undefined).end(stdin);
  });
}

/** Remedy for failures caused by the subject of an earlier check. */
export const MEND_ABOVE = "# Mend what is missing above, then try again";

/** Returns the message of a failed trial, for people. */
export function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export function ok(seen: string): HostFinding {
  return { verdict: "ok", seen, mend: [] };
}

export function weaker(seen: string, ...mend: readonly string[]): HostFinding {
  return { verdict: "weaker", seen, mend };
}

export function missing(seen: string, ...mend: readonly string[]): HostFinding {
  return { verdict: "missing", seen, mend };
}
