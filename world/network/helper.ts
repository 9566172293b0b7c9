import { type ChildProcess, spawn } from "node:child_process";
import { Socket } from "node:net";
import type { Captured, NetworkRules, WorldNetwork } from "../model/network.ts";
import { WorldUnavailable } from "../model/unavailable.ts";
import type { DnsSockets } from "../model/network.ts";
import { errnoName } from "../model/errno.ts";
import { birth, type Born, type Said } from "./birth.ts";
import { findNft } from "./nft.ts";
import { listenedPorts, rulesText } from "./rules.ts";

/** Time limit for nft or a listener; a busy machine takes 50 ms. */
const RULES_PATIENCE_MS = 10_000;

type Dialled = { readonly resolve: (socket: Socket) => void; readonly reject: (error: Error) => void };

/**
 * The broker's end of `substrate-init network`: one process per world, in no namespace of the world except the network's. The
 * process exits when its channel closes, even if the broker is killed.
 */
export class NetworkHelper implements WorldNetwork {
  /** Host process id, by which init joins the helper's namespaces. */
  readonly pid: number;
  /** Settles with the cause when the helper has ended; never rejects. */
  readonly ended: Promise<string>;
  /** Why nft is unusable, as text for people; undefined: usable. */
  #refusal: string | undefined;
  readonly #child: ChildProcess;
  readonly #listener: number;
  #dns: DnsSockets | undefined;
  /** Why the helper ended. */
  #over: string | undefined;
  readonly #dialled = new Map<number, Dialled>();
  /** Calls of `flush`, which the helper answers in order. */
  #flushing: (() => void)[] = [];
  #waiting: Captured[] = [];
  #take: ((captured: Captured) => void) | undefined;
  #ruled: ((complaint: string) => void) | undefined;
  /** Serializes changes of the rules. */
  #turn: Promise<void> = Promise.resolve();
  /** The mechanism of the first rules, kept for all later rules. */
  #way: "nft" | "listeners" | undefined;
  #numbers = 0;

  private constructor(child: ChildProcess, nft: string | undefined, born: Born) {
    this.#child = child;
    this.#refusal =
      nft === undefined ? "nft is not installed on this host (Debian: apt-get install nftables)" : undefined;
    this.#listener = born.port;
    this.#dns = { udp: born.udp, tcp: born.tcp };
    this.pid = child.pid ?? 0;
    this.ended = new Promise((resolve) => {
      child.once("exit", (code, signal) =>
        resolve(`its network ended with ${signal ?? `exit code ${code}`}`),
      );
    });
    void this.ended.then((cause) => this.#settle(cause));
    child.on("message", (said: Said, socket) =>
      this.#hear(said, socket instanceof Socket ? socket : undefined),
    );
  }

  /** Makes the namespace. Throws {@link WorldUnavailable}, with the helper killed. */
  static async start(init: string, signal: AbortSignal): Promise<NetworkHelper> {
    signal.throwIfAborted();
    const nft = findNft();
    const child = spawn(init, ["network", nft ?? "-"], {
      stdio: ["ignore", "ignore", "ignore", "ipc"],
      env: {},
      cwd: "/",
      detached: true,
    });
    try {
      return new NetworkHelper(child, nft, await birth(child, signal));
    } catch (error) {
      child.kill("SIGKILL");
      throw error;
    }
  }

  /** The isolation vector's text for `net`, at present: a refusal by nft shows only with the first rules. */
  get word(): string {
    if (this.#way !== "listeners") return "on";
    return `degraded: ${this.#refusal ?? "unknown"}: programs reach only ports with a listener, and refused connections are reset after they were accepted`;
  }

  takeDns(): DnsSockets {
    const dns = this.#dns;
    // The network of a waiting world may have ended before its first command.
    if (this.#over !== undefined)
      throw new WorldUnavailable(
        `The world ended before the command began: ${this.#over}`,
        "Run the command again",
      );
    if (dns === undefined) throw new Error("The sockets for names were taken already");
    this.#dns = undefined;
    return dns;
  }

  onConnection(listener: (captured: Captured) => void): void {
    this.#take = listener;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const captured of waiting) listener(captured);
  }

  allow(rules: NetworkRules): Promise<void> {
    const turn = this.#turn.then(() => this.#allow(rules));
    // The change failed, ignoring: the caller gets the error, and the next change is tried anyway.
    this.#turn = turn.catch(() => {});
    return turn;
  }

  flush(): Promise<void> {
    return new Promise((resolve) => {
      if (!this.#send({ flush: "1" })) return resolve();
      this.#flushing.push(resolve);
    });
  }

  connect(port: number): Promise<Socket> {
    this.#numbers += 1;
    const number = this.#numbers;
    return new Promise((resolve, reject) => {
      if (!this.#send({ connect: `${number} ${port}` }))
        return reject(new Error("The world's network has ended"));
      this.#dialled.set(number, { resolve, reject });
    });
  }

  end(): void {
    if (this.#child.connected) this.#child.disconnect();
  }

  async #allow(rules: NetworkRules): Promise<void> {
    // A new namespace has no listeners except those of the world's own commands, so refusing everything needs no rules.
    if (this.#way === undefined && rules.ports.length === 0 && rules.ranges.length === 0) return;
    const complaint = (await this.#byNft(rules)) ?? (await this.#byListeners(rules));
    if (complaint === "") return;
    throw new WorldUnavailable(
      `Cannot change a world's network: ${complaint}`,
      "See 'substrate broker logs'",
    );
  }

  /** Returns null if nft is not used. A host that refuses the first rules refuses all rules; a later refusal fails only that change. */
  async #byNft(rules: NetworkRules): Promise<string | null> {
    if (this.#way === "listeners" || this.#refusal !== undefined) return null;
    const place = this.#way === undefined ? "new" : "ruled";
    const complaint = await this.#say({ rules: rulesText(rules, this.#listener, place) });
    if (complaint === "") this.#way = "nft";
    if (complaint === "" || this.#way === "nft") return complaint;
    this.#refusal = `nft cannot make rules for a network namespace here (${complaint})`;
    return null;
  }

  async #byListeners(rules: NetworkRules): Promise<string> {
    this.#way = "listeners";
    return await this.#say({ listen: listenedPorts(rules).join(",") });
  }

  #say(message: Readonly<Record<string, string>>): Promise<string> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => answer("it took too long"), RULES_PATIENCE_MS);
      const answer = (complaint: string): void => {
        clearTimeout(timer);
        this.#ruled = undefined;
        resolve(complaint);
      };
      this.#ruled = answer;
      if (!this.#send(message)) answer("the world's network has ended");
    });
  }

  #send(message: Readonly<Record<string, string>>): boolean {
    if (!this.#child.connected) return false;
    this.#child.send(message);
    return true;
  }

  #hear(said: Said, socket: Socket | undefined): void {
    if (said.rules !== undefined) this.#ruled?.(said.rules);
    else if (said.to !== undefined) this.#captured(said, socket);
    else if (said.connected !== undefined) this.#connected(said.connected, socket);
    else if (said.refused !== undefined) this.#refused(said.refused, said.errno ?? 0);
    // Node emits a message with a socket some ticks later than one without.
    else if (said.flushed !== undefined) setImmediate(this.#flushing.shift() ?? (() => {}));
  }

  #captured({ to: address = "", port = 0, inode = 0 }: Said, socket: Socket | undefined): void {
    if (socket === undefined) return;
    socket.allowHalfOpen = true;
    const captured = { socket, address, port, inode };
    if (this.#take === undefined) this.#waiting.push(captured);
    else this.#take(captured);
  }

  #connected(number: number, socket: Socket | undefined): void {
    const dialled = this.#dialled.get(number);
    this.#dialled.delete(number);
    if (dialled === undefined || socket === undefined) socket?.destroy();
    else {
      socket.allowHalfOpen = true;
      dialled.resolve(socket);
    }
  }

  #refused(number: number, errno: number): void {
    this.#dialled
      .get(number)
      ?.reject(new Error(`No program in the world listens there: ${errnoName(errno)}`));
    this.#dialled.delete(number);
  }

  #settle(cause: string): void {
    this.#over = cause;
    this.#dns?.udp.close();
    this.#dns?.tcp.close();
    this.#dns = undefined;
    for (const { socket } of this.#waiting) socket.destroy();
    this.#waiting = [];
    for (const { reject } of this.#dialled.values())
      reject(new Error(`The world's network is gone: ${cause}`));
    this.#dialled.clear();
    for (const resolve of this.#flushing) resolve();
    this.#flushing = [];
    this.#ruled?.(cause);
  }
}
