/** A client of `GET /v1/stream` that does no more than the API asks of one. */
import { connect } from "node:net";
import { join } from "node:path";
import { WebSocket } from "ws";
import type { ErrorReply, ExecuteReply } from "../../../schemas/generated/types.ts";
import { eventually, type TestBroker } from "./broker.ts";

export type Message = { readonly type: string } & Partial<ExecuteReply> &
  Partial<ErrorReply> & { readonly lines?: readonly string[]; readonly bytes?: number };

const WAIT_MS = 50_000;

export class StreamClient {
  readonly messages: Message[] = [];
  /** The code with which the connection was closed. */
  readonly closed: Promise<number>;
  readonly #socket: WebSocket;
  readonly #out: Buffer[] = [];
  readonly #err: Buffer[] = [];

  private constructor(path: string, address: string) {
    this.#socket = new WebSocket(`ws://broker${address}`, { createConnection: () => connect(path) });
    this.#socket.on("message", (data: Buffer, isBinary) => {
      if (isBinary) (data[0] === 1 ? this.#out : this.#err).push(data.subarray(1));
      else this.messages.push(JSON.parse(data.toString("utf8")) as Message);
    });
    this.closed = new Promise((resolve) => this.#socket.once("close", (code) => resolve(code)));
  }

  /** Sends the first message. */
  static async open(
    broker: Pick<TestBroker, "home" | "project">,
    first: Readonly<Record<string, unknown>>,
    socket = "agent.sock",
  ): Promise<StreamClient> {
    const client = await StreamClient.#connected(join(broker.home, "sock", socket), "/v1/stream");
    client.tell({ agent_id: "test", cwd: broker.project, ...first });
    return client;
  }

  static async attach(
    broker: Pick<TestBroker, "home">,
    span: string,
    socket = "agent.sock",
  ): Promise<StreamClient> {
    return await StreamClient.#connected(join(broker.home, "sock", socket), `/v1/stream/${span}`);
  }

  static #connected(path: string, address: string): Promise<StreamClient> {
    const client = new StreamClient(path, address);
    return new Promise((resolve, reject) => {
      client.#socket.once("open", () => resolve(client));
      client.#socket.once("error", reject);
    });
  }

  /** Sends a text message. */
  tell(message: object | string): void {
    this.#socket.send(typeof message === "string" ? message : JSON.stringify(message));
  }

  type(input: string | Uint8Array): void {
    this.#socket.send(Buffer.concat([Buffer.from([0]), Buffer.from(input)]));
  }

  /** A binary message as it is. */
  sendRaw(bytes: Uint8Array): void {
    this.#socket.send(bytes);
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Breaks the connection off, as a client that was killed does. */
  leave(): void {
    this.#socket.terminate();
  }

  get out(): Buffer {
    return Buffer.concat(this.#out);
  }

  get err(): Buffer {
    return Buffer.concat(this.#err);
  }

  get screen(): string {
    return this.out.toString("utf8");
  }

  get last(): Message | undefined {
    return this.messages.at(-1);
  }

  /** The exit message, after the connection's end. */
  async ended(): Promise<Message> {
    await this.closed;
    if (this.last === undefined) throw new Error("The connection was closed without a message");
    return this.last;
  }

  async started(): Promise<string> {
    await this.until(() => this.messages.length > 0, "the first message");
    const [first] = this.messages;
    if (first?.type !== "started" || first.span_id === undefined)
      throw new Error(`Expected 'started', received ${JSON.stringify(first)}`);
    return first.span_id;
  }

  /** Waits for a text on the screen. */
  async shows(text: string | RegExp): Promise<void> {
    const isThere = (): boolean =>
      typeof text === "string" ? this.screen.includes(text) : text.test(this.screen);
    await this.until(isThere, String(text));
  }

  async until(holds: () => boolean, what: string): Promise<void> {
    if (await eventually(holds, WAIT_MS)) return;
    throw new Error(
      `Waited for ${what}; the screen has ${JSON.stringify(this.screen.slice(-2000))}, the messages are ${JSON.stringify(this.messages)}`,
    );
  }
}
