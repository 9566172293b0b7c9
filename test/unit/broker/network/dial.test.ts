import { once } from "node:events";
import {
  type AddressInfo,
  type Server,
  Socket,
  type SocketConstructorOpts,
  connect,
  createServer,
} from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { afterEach, describe, expect, test, vi } from "vitest";
import { DialError, dial, dialOrder } from "../../../../broker/network/dial.ts";
import { leastWaitMs } from "../../../support/processes/cost.ts";

const plainSocket = (): Socket => new Socket({ allowHalfOpen: true });

// A port of the loopback whose connections are not answered for a while: its queue is full, so SYNs are dropped.

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

class SlowListener {
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

const { signal } = new AbortController();
const ends: (() => unknown)[] = [];

afterEach(async () => {
  vi.useRealTimers();
  for (const end of ends.splice(0)) await end();
});

type Listener = { readonly port: number; readonly accepted: Socket[] };

async function listen(host: string, port = 0): Promise<Listener> {
  const accepted: Socket[] = [];
  const server: Server = createServer({ allowHalfOpen: true }, (socket) => {
    accepted.push(socket);
    socket.on("error", () => {});
  });
  ends.push(() => {
    for (const socket of accepted) socket.destroy();
    server.close();
  });
  server.listen(port, host);
  await once(server, "listening");
  return { port: (server.address() as AddressInfo).port, accepted };
}

async function slow(host: string): Promise<SlowListener> {
  const listener = await SlowListener.start(host);
  ends.push(async () => await listener.stop());
  return listener;
}

async function dialled(addresses: readonly string[], port: number): Promise<Socket> {
  const socket = await dial(addresses, port, { signal, make: plainSocket });
  ends.push(() => socket.destroy());
  return socket;
}

describe("the order in which addresses are tried", () => {
  test("families take turns, beginning with the first address's, each in its own order, once", () => {
    expect(dialOrder(["2001:db8::1", "2001:db8::2", "2001:db8::3", "192.0.2.1", "192.0.2.2"])).toEqual([
      "2001:db8::1",
      "192.0.2.1",
      "2001:db8::2",
      "192.0.2.2",
      "2001:db8::3",
    ]);
    expect(dialOrder(["192.0.2.1", "2001:db8::1", "2001:db8::2", "2001:db8::3"])).toEqual([
      "192.0.2.1",
      "2001:db8::1",
      "2001:db8::2",
      "2001:db8::3",
    ]);
    expect(dialOrder(["192.0.2.1", "192.0.2.2", "192.0.2.1"])).toEqual(["192.0.2.1", "192.0.2.2"]);
    expect(dialOrder([])).toEqual([]);
  });

  test("of a thousand addresses twenty are tried", () => {
    expect(dialOrder(Array.from({ length: 1000 }, (_, at) => `192.0.2.${at % 256}`))).toHaveLength(20);
  });
});

describe("dialling", () => {
  test("the first that answers is the one, and bytes go both ways with half-closed ends", async () => {
    const listener = await listen("127.0.0.2");
    const socket = await dialled(["127.0.0.2"], listener.port);
    expect(socket.remoteAddress).toBe("127.0.0.2");
    await expect.poll(() => listener.accepted.length).toBe(1);
    listener.accepted[0]?.end("hello");
    const got: Buffer[] = [];
    socket.on("data", (bytes: Buffer) => got.push(bytes));
    await once(socket, "end");
    expect(String(Buffer.concat(got))).toBe("hello");
    const heard = once(listener.accepted[0] as Socket, "data");
    socket.end("bye");
    expect(String((await heard)[0])).toBe("bye");
  });

  test("a refused address is passed over at once", async () => {
    const { port } = await listen("127.0.0.3");
    const wait = await leastWaitMs(async () => {
      const socket = await dialled(["127.0.0.2", "127.0.0.4", "127.0.0.3"], port);
      expect(socket.remoteAddress).toBe("127.0.0.3");
    });
    expect(wait).toBeLessThan(200);
  });

  test("a silent address costs a quarter of a second", async () => {
    const silent = await slow("127.0.0.2");
    await listen("127.0.0.3", silent.port);
    const since = performance.now();
    const socket = await dialled(["127.0.0.2", "127.0.0.3"], silent.port);
    expect(socket.remoteAddress).toBe("127.0.0.3");
    expect(performance.now() - since).toBeGreaterThan(240);
    expect(performance.now() - since).toBeLessThan(10_000);
  });

  test("an address that answers after a second is reached, though another was tried and refused since", async () => {
    const listener = await slow("127.0.0.2");
    const dialling = dialled(["127.0.0.2", "127.0.0.3"], listener.port);
    await sleep(400);
    listener.wake();
    expect((await dialling).remoteAddress).toBe("127.0.0.2");
  });

  test("who loses is closed and never gets a byte", async () => {
    const late = await slow("127.0.0.2");
    const quick = await listen("127.0.0.3", late.port);
    const socket = await dialled(["127.0.0.2", "127.0.0.3"], late.port);
    late.wake();
    socket.write("secret");
    await expect.poll(() => quick.accepted.length).toBe(1);
    const [bytes] = (await once(quick.accepted[0] as Socket, "data")) as [Buffer];
    expect(String(bytes)).toBe("secret");
    expect(process.getActiveResourcesInfo().filter((name) => name === "TCPConnectWrap")).toEqual([]);
  });

  test("what is read goes to the caller's buffer when it gave one", async () => {
    const { port, accepted } = await listen("127.0.0.2");
    const heard: string[] = [];
    const buffer = Buffer.alloc(64);
    const onread = {
      buffer,
      callback: (length: number) => heard.push(String(buffer.subarray(0, length))) > 0,
    };
    const socket = await dial(["127.0.0.2"], port, {
      signal,
      make: () => new Socket({ allowHalfOpen: true, onread } as SocketConstructorOpts),
    });
    ends.push(() => socket.destroy());
    await expect.poll(() => accepted.length).toBe(1);
    accepted[0]?.write("hello");
    await expect.poll(() => heard.join("")).toBe("hello");
  });
});

describe("when nothing answers", () => {
  test("the error says of each address what happened", async () => {
    const { port } = await listen("127.0.0.9");
    const failure = await dial(["127.0.0.2", "127.0.0.3"], port, { signal, make: plainSocket }).catch(
      (error: unknown) => error,
    );
    expect(failure).toBeInstanceOf(DialError);
    expect(failure).toMatchObject({
      message: `Cannot connect to port ${port} of 127.0.0.2 (ECONNREFUSED), 127.0.0.3 (ECONNREFUSED)`,
      attempts: [
        { address: "127.0.0.2", code: "ECONNREFUSED" },
        { address: "127.0.0.3", code: "ECONNREFUSED" },
      ],
    });
  });

  test("ten seconds of silence end in ETIMEDOUT", async () => {
    const silent = await slow("127.0.0.2");
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const dialling = dial(["127.0.0.2", "127.0.0.3"], silent.port, { signal, make: plainSocket });
    const failure = dialling.catch((error: unknown) => error);
    vi.advanceTimersByTime(250);
    await sleep(50);
    vi.advanceTimersByTime(9_749);
    expect(await Promise.race([failure, sleep(50, "goes on")])).toBe("goes on");
    vi.advanceTimersByTime(1);
    expect(await failure).toMatchObject({
      attempts: [
        { address: "127.0.0.3", code: "ECONNREFUSED" },
        { address: "127.0.0.2", code: "ETIMEDOUT" },
      ],
    });
    expect(vi.getTimerCount()).toBe(0);
  });

  test("who hangs up ends all attempts with his reason", async () => {
    const silent = await slow("127.0.0.2");
    const hungUp = new AbortController();
    const dialling = dial(["127.0.0.2"], silent.port, { signal: hungUp.signal, make: plainSocket });
    const reason = new Error("gone");
    setTimeout(() => hungUp.abort(reason), 50);
    await expect(dialling).rejects.toBe(reason);
    await expect(dial(["127.0.0.2"], silent.port, { signal: hungUp.signal, make: plainSocket })).rejects.toBe(
      reason,
    );
    await expect
      .poll(() => process.getActiveResourcesInfo().filter((name) => name === "TCPConnectWrap"))
      .toEqual([]);
  });

  test.each([
    [["localhost"], 80],
    [["127.0.0.2", "a.example"], 80],
    [["127.1"], 80],
    [[], 80],
    [["127.0.0.2"], 0],
    [["127.0.0.2"], 65_536],
  ])("%j port %i is not dialled: a name would be resolved a second time", async (addresses, port) => {
    await expect(dial(addresses, port, { signal, make: plainSocket })).rejects.toThrow(TypeError);
  });
});
