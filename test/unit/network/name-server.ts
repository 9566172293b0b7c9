/** A DNS server on the loopback that says what a test wants, and counts what it was asked. */
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { type Answer, decode, encode } from "dns-packet";
import { HostResolver } from "../../../broker/network/resolver.ts";

export type Say = { readonly code?: number; readonly addresses?: readonly string[]; readonly ttl?: number };

/** What to say to a name and type, which is `A` or `AAAA`; undefined is silence. */
export type Zone = (name: string, type: string) => Say | undefined;

export class NameServer implements Disposable {
  /** `A www.a.example`, in the order of the questions. */
  readonly asked: string[] = [];
  readonly address: string;
  readonly #socket: Socket;

  static async start(zone: Zone): Promise<NameServer> {
    const socket = createSocket("udp4");
    socket.bind(0, "127.0.0.1");
    await once(socket, "listening");
    return new NameServer(socket, zone);
  }

  private constructor(socket: Socket, zone: Zone) {
    this.#socket = socket;
    this.address = `127.0.0.1:${socket.address().port}`;
    socket.on("message", (message, from) => {
      const reply = this.#reply(message, zone);
      if (reply !== undefined) socket.send(reply, from.port, from.address);
    });
  }

  [Symbol.dispose](): void {
    this.#socket.close();
  }

  #reply(message: Buffer, zone: Zone): Buffer | undefined {
    const { id, questions } = decode(message);
    const [question] = questions ?? [];
    if (question === undefined) return undefined;
    const { name, type } = question;
    this.asked.push(`${type} ${name}`);
    const say = zone(name.toLowerCase(), type);
    if (say === undefined) return undefined;
    const { code = 0, addresses = [], ttl = 60 } = say;
    const answers = addresses.map((data) => ({ name, type, ttl, data }) as Answer);
    return encode({
      type: "response",
      ...(id === undefined ? {} : { id }),
      flags: 0x0180 | code,
      questions: [question],
      answers,
    });
  }
}

/** A server, and a resolver that asks it alone. */
export async function withServer(zone: Zone, refreshSecs = 60): Promise<[NameServer, HostResolver]> {
  const server = await NameServer.start(zone);
  return [server, new HostResolver({ servers: [server.address], refreshSecs })];
}
