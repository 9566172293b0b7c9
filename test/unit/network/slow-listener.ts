/** A port of the loopback whose connections are not answered for a while: its queue is full, so SYNs are dropped. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";

/** Listens with the shortest queue, and sleeps instead of accepting, in a thread that can sleep. */
const LISTENER = `
  const { createServer } = require("node:net");
  const { parentPort, workerData } = require("node:worker_threads");
  const server = createServer((socket) => socket.on("error", () => {}));
  server.listen({ port: 0, host: workerData.host, backlog: 1 }, () => {
    parentPort.postMessage(server.address().port);
    setTimeout(() => Atomics.wait(workerData.flag, 0, 0), 10);
  });
`;

export class SlowListener {
  readonly port: number;
  readonly #worker: Worker;
  readonly #flag: Int32Array;
  readonly #queued: Socket[] = [];

  static async start(host: string): Promise<SlowListener> {
    const flag = new Int32Array(new SharedArrayBuffer(4));
    const worker = new Worker(LISTENER, { eval: true, workerData: { host, flag } });
    const [port] = (await once(worker, "message")) as [number];
    await sleep(100);
    const listener = new SlowListener(worker, flag, port);
    await listener.#fill(host);
    return listener;
  }

  private constructor(worker: Worker, flag: Int32Array, port: number) {
    this.#worker = worker;
    this.#flag = flag;
    this.port = port;
  }

  /** From now on it accepts; who was dropped comes again when the kernel repeats its SYN, a second after the first. */
  wake(): void {
    Atomics.store(this.#flag, 0, 1);
    Atomics.notify(this.#flag, 0);
  }

  async stop(): Promise<void> {
    this.wake();
    for (const socket of this.#queued) socket.destroy();
    await this.#worker.terminate();
  }

  /** Until one is not answered within 100 ms: the queue is full then. */
  async #fill(host: string): Promise<void> {
    for (let tries = 0; tries < 16; tries++) {
      const socket = connect(this.port, host);
      socket.on("error", () => {});
      this.#queued.push(socket);
      const answered = await Promise.race([once(socket, "connect").then(() => true), sleep(100, false)]);
      if (!answered) return;
    }
    throw new Error("The listener's queue could not be filled");
  }
}
