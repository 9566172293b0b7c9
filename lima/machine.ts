/** The virtual machine of one user: made at the first need, kept running, and started again after a crash or a sleep. */
import { writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { abortError, timeLimit, WorldUnavailable } from "../world/backend.ts";
import type { Instance, Limactl, Mount } from "./limactl.ts";

export type MachineOptions = {
  readonly name: string;
  readonly limactl: Limactl;
  /** The folders that a new machine shows and where commands may write, absolute. */
  readonly mounts: () => readonly Mount[];
  /** The machine's description, written before it is made, and where. */
  readonly describe: () => Promise<string>;
  readonly file: string;
  /** Whether the agent that answers is this version's; rejects with the reason why none answers. */
  readonly greet: (signal: AbortSignal) => Promise<boolean>;
  /** The program in the machine that puts this version's agent in the place of another, as root. */
  readonly provision: string;
  /** How long the agent of a machine that ran already may stay silent before the machine is started anew. */
  readonly silenceMs: number;
  readonly onStep: (step: string) => void;
};

/** How long the agent of a machine that runs may take to answer: it starts after the machine's other services. */
const AGENT_MS = 60_000;
const PAUSE_MS = 500;

/** The native parts are compiled, which takes half a minute on two processors. */
const UPGRADE_MS = 10 * 60_000;

/** How long a caller waits for a machine on its way before it is told to come again. */
const PATIENCE_MS = 5000;

/** Starts are shared, and go on when the caller that asked gives up: the next one finds the machine further. */
export class LimaMachine {
  readonly #options: MachineOptions;
  readonly #closing = new AbortController();
  #starting: Promise<void> | undefined;
  #step = "";
  #since = 0;
  /** The folders of the machine that runs, as it was started. */
  #shown: readonly Mount[] = [];
  /** The machine was started anew, and its agent has not answered since. */
  #isRenewed = false;

  constructor(options: MachineOptions) {
    this.#options = options;
  }

  /** Settles when the agent of the running machine answers. Throws {@link WorldUnavailable}, also for a machine that is on its way. */
  async ready(signal: AbortSignal): Promise<void> {
    if (this.#starting === undefined) {
      this.#since = Date.now();
      this.#starting = this.#start(this.#closing.signal).finally(() => {
        this.#starting = undefined;
      });
      // Nobody may be left to hear of a failure.
      this.#starting.catch(() => {});
    }
    const patience = timeLimit(PATIENCE_MS, signal);
    await Promise.race([this.#starting, this.#onItsWay(patience)]);
  }

  /** Whether commands in the machine may write below a folder: one that was added to 'projects' since its start is read-only there. */
  mayWrite(folder: string): boolean {
    return this.#shown.some(
      ({ location, writable }) =>
        writable && (folder === location || folder.startsWith(location === "/" ? "/" : `${location}/`)),
    );
  }

  /** Leaves the machine running: it is warm for the next broker. */
  close(): void {
    this.#closing.abort(
      new WorldUnavailable("The broker is stopping", "Try again when the broker runs again"),
    );
  }

  async #onItsWay(patience: AbortSignal): Promise<never> {
    await new Promise((resolve) => patience.addEventListener("abort", resolve, { once: true }));
    const seconds = Math.round((Date.now() - this.#since) / 1000);
    throw new WorldUnavailable(
      `The virtual machine '${this.#options.name}' is not ready yet: ${this.#step}, for ${seconds} s`,
      "Try again in a while; 'substrate broker logs' shows what it does, and a first start takes some minutes",
    );
  }

  async #start(signal: AbortSignal): Promise<void> {
    const { name, limactl, greet, provision, mounts } = this.#options;
    this.#note("looking for it");
    await limactl.check(signal);
    const found = await limactl.find(name, signal);
    const isThere = found?.status === "Running" && !this.#needsMounts(found);
    if (isThere) this.#shown = found.mounts;
    if (isThere && (await isAnswered(greet, signal))) return;
    if (!isThere) {
      await this.#run(found, signal);
      this.#shown = mounts();
    }
    this.#note("its agent is starting");
    if (await this.#reached(isThere, signal)) return;
    this.#note("its agent is upgraded");
    await this.#upgrade(signal);
    if (await this.#answered(AGENT_MS, signal)) return;
    throw new WorldUnavailable(
      `The agent in the virtual machine '${name}' stayed another version after its upgrade`,
      `Run 'limactl shell ${name} sudo ${provision}' and read what it prints`,
    );
  }

  async #run(found: Instance | undefined, signal: AbortSignal): Promise<void> {
    const { name, limactl, mounts, describe, file } = this.#options;
    if (found === undefined) {
      this.#note("it is made, from an image that may have to be loaded");
      await writeFile(file, await describe(), { mode: 0o600 });
      await limactl.create(name, file, signal);
    } else if (found.status === "Broken") throw broken(found);
    if (found !== undefined && this.#needsMounts(found)) {
      this.#note("its folders are changed");
      if (found.status === "Running") await limactl.stop(name, signal);
      await limactl.setMounts(name, mounts(), signal);
    }
    this.#note("it is starting");
    await limactl.start(name, signal);
  }

  /**
   * Whether the agent is this version's. Lima never makes the forward of a socket again once its ssh has ended, as it does when the host
   * sleeps (lima-vm/lima#5420): only another start of the machine does. One try, because an agent that is broken would end each start.
   */
  async #reached(ranBefore: boolean, signal: AbortSignal): Promise<boolean> {
    const { name, limactl, silenceMs } = this.#options;
    try {
      return await this.#answered(ranBefore ? silenceMs : AGENT_MS, signal);
    } catch (error) {
      if (!ranBefore || this.#isRenewed || signal.aborted) throw error;
    }
    this.#isRenewed = true;
    this.#note("its agent does not answer, so it is stopped and started");
    await limactl.stop(name, signal);
    await limactl.start(name, signal);
    return await this.#answered(AGENT_MS, signal);
  }

  /**
   * npm puts another version into a new folder of the same name, and the machine may show the old folder, which is empty then. Each start
   * shows the new one, and provisions.
   */
  async #upgrade(signal: AbortSignal): Promise<void> {
    const { name, limactl, provision, onStep } = this.#options;
    try {
      await limactl.run(name, ["sudo", provision], signal, UPGRADE_MS);
    } catch (error) {
      if (signal.aborted) throw error;
      onStep(
        `it is stopped and started for the upgrade: ${error instanceof Error ? error.message : String(error)}`,
      );
      await limactl.stop(name, signal);
      await limactl.start(name, signal);
    }
  }

  async #answered(ms: number, signal: AbortSignal): Promise<boolean> {
    const { name, greet } = this.#options;
    const until = performance.now() + ms;
    for (;;) {
      try {
        const isSame = await greet(signal);
        this.#isRenewed = false;
        return isSame;
      } catch (error) {
        if (performance.now() < until) {
          await sleep(PAUSE_MS, undefined, { signal }).catch(() => {
            throw abortError(signal);
          });
          continue;
        }
        const why = error instanceof Error ? error.message : String(error);
        throw new WorldUnavailable(
          `The virtual machine '${name}' runs, and its agent does not answer: ${why}`,
          `See 'limactl shell ${name} sudo journalctl -u substrate-agent'; 'limactl stop ${name}' lets the next command start it anew`,
          { cause: error },
        );
      }
    }
  }

  /** Folders cannot be added while a machine runs; a machine that shows more than is wanted stays as it is. */
  #needsMounts({ mounts }: Instance): boolean {
    return this.#options
      .mounts()
      .some(
        (wanted) =>
          !mounts.some((there) => there.location === wanted.location && there.writable === wanted.writable),
      );
  }

  #note(step: string): void {
    this.#step = step;
    this.#options.onStep(step);
  }
}

async function isAnswered(greet: MachineOptions["greet"], signal: AbortSignal): Promise<boolean> {
  try {
    return await greet(signal);
  } catch {
    // The agent does not answer, ignoring: the reason is asked for again once the machine has been looked after.
    return false;
  }
}

export function broken({ name, errors }: Instance): WorldUnavailable {
  const why = errors.length > 0 ? errors.join("; ") : "limactl says no more";
  return new WorldUnavailable(
    `The virtual machine '${name}' is broken: ${why}`,
    `Run 'limactl stop --force ${name}' and try again; 'limactl delete --force ${name}' makes a new one, without the held changes in it`,
  );
}
