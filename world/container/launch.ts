import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  firstAnswer,
  type Holder,
  type Launched,
  type Launcher,
  type LaunchPlan,
  tooLate,
} from "../linux/launch.ts";
import { ContainerUnavailable, removeContainer, runProgram } from "./program.ts";
import { type Container, type ContainerRuntime, runWords } from "./runtime.ts";

export type ContainerLauncherOptions = {
  readonly runtime: ContainerRuntime;
  readonly uid: number;
  /** Folder of the sockets to which init connects; exists, and is hidden from every world. */
  readonly folder: string;
};

/** Prefix of folders needed during a world's start. */
export const OWN_FOLDERS = "w-";

/** Init runs once the runtime reports a running container, and then connects within milliseconds. */
const CONNECT_PATIENCE_MS = 5000;

/** `sun_path` has 108 bytes with its NUL (unix(7)); Node truncates longer paths silently. */
const MAX_SOCKET_PATH = 107;

/**
 * Starts init in a container. A daemon passes on no descriptors, so init connects to a socket in a folder open to the caller
 * alone. Init looks up the socket in the host's tree as seen in the container: a runtime on another machine, or with another
 * tree, does not find the socket and makes no world.
 */
export class ContainerLauncher implements Launcher {
  readonly name: string;
  /** Root keeps its uid without a user namespace, as without a container. */
  readonly userNamespace: boolean;
  readonly networkRefusal = "worlds in a container have their own localhost only, in this version";
  readonly cgroupRefusal = "a container gets no cgroup from the broker, and the runtime's own is not used";
  readonly #options: ContainerLauncherOptions;
  #root: Promise<readonly string[]> | undefined;

  constructor(options: ContainerLauncherOptions) {
    this.name = `container:${options.runtime.name}`;
    this.userNamespace = options.uid !== 0;
    this.#options = options;
  }

  async launch(id: string, plan: LaunchPlan, signal: AbortSignal): Promise<Launched> {
    signal.throwIfAborted();
    const { runtime, folder } = this.#options;
    const own = await mkdtemp(join(folder, OWN_FOLDERS));
    const container = { name: `substrate-${id}`, owner: folder, init: plan.init, folder: own };
    const server = createServer();
    const arrival = connectionOf(server);
    try {
      await listen(server, join(own, "channel"));
      return await this.#converse(container, arrival, plan, signal);
    } catch (error) {
      void arrival.then((channel) => channel.destroy());
      await removeContainer(runtime.program, container.name).catch(() => {
        // The container resists, ignoring: the next broker of this home removes the container, and the reason of the failure
        // matters more.
      });
      throw signal.aborted ? tooLate(signal) : error;
    } finally {
      server.close();
      await rm(own, { recursive: true, force: true });
    }
  }

  async #converse(
    container: Container,
    arrival: Promise<Socket>,
    plan: LaunchPlan,
    signal: AbortSignal,
  ): Promise<Launched> {
    const { program } = this.#options.runtime;
    const started = this.#start(container, signal);
    const heard = new AbortController();
    const silence = this.#silence(container, started, heard.signal);
    const channel = await Promise.race([arrival, silence]).finally(() => heard.abort());
    const ready = await firstAnswer(channel, plan, signal, (fail) => {
      channel.once("close", () => fail("its container ended before it was ready", program.hint));
    });
    // The runtime must have recorded the container, or removing would fail.
    await started;
    return {
      channel,
      achieved: ready.achieved,
      unwatched: ready.unwatched,
      unrefreshed: ready.unrefreshed,
      gated: ready.gated,
      limits: ready.limits,
      holder: holderOf(this.#options.runtime, container.name, channel, ready.pid),
    };
  }

  async #start(container: Container, signal: AbortSignal): Promise<void> {
    const { runtime } = this.#options;
    this.#root ??= runtime.prepare(signal).catch((error: unknown) => {
      this.#root = undefined;
      throw error;
    });
    await runProgram(runtime.program, runWords(runtime, await this.#root, container), signal);
  }

  /** Rejects when the runtime fails, or when the container runs but init does not connect. */
  async #silence(container: Container, started: Promise<void>, heard: AbortSignal): Promise<never> {
    const { runtime } = this.#options;
    await started;
    await sleep(CONNECT_PATIENCE_MS, undefined, { signal: heard });
    const said = await runtime.complaint(container.folder);
    throw new ContainerUnavailable(
      `'${container.init}' ran in a container of ${runtime.name} and did not reach the broker${said === "" ? "" : `: ${said}`}`,
      `The container must see this host's files: ${runtime.program.words[0]} has to run on this host, outside of any other container`,
    );
  }
}

function listen(server: Server, path: string): Promise<void> {
  if (Buffer.byteLength(path) > MAX_SOCKET_PATH)
    throw new ContainerUnavailable(
      `The socket path '${path}' has ${Buffer.byteLength(path)} bytes; the kernel accepts ${MAX_SOCKET_PATH}`,
      "Use a shorter SUBSTRATE_HOME",
    );
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(path, resolve);
  });
}

/** Returns the first connection; later connections are closed. */
function connectionOf(server: Server): Promise<Socket> {
  return new Promise((resolve) => {
    server.once("connection", (channel) => {
      server.on("connection", (late) => late.destroy());
      resolve(channel);
    });
  });
}

/**
 * Returns the holder of a world. Only the world's PID 1 has the other end of the channel: a closed channel means that the world
 * is gone, and the container is then removed.
 */
function holderOf(runtime: ContainerRuntime, name: string, channel: Socket, pid: number): Holder {
  const remove = (): Promise<void> =>
    removeContainer(runtime.program, name).catch(() => {
      // The container resists, ignoring: nothing runs inside, and the next broker of this home removes the container.
    });
  const ended = new Promise<string>((resolve) => {
    channel.once("close", () => void remove().then(() => resolve("its container has ended")));
  });
  return { pid, ended, kill: () => void remove() };
}
