/** A stub on sockets of this machine's loopback, which stand for the world's, and what a client needs to ask it. */
import { type Socket, createSocket } from "node:dgram";
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { type DecodedPacket, type OptAnswer, type Packet, decode, encode } from "dns-packet";
import { DnsStub, type StubAnswers } from "../../../broker/network/stub.ts";
import { SyntheticAddresses } from "../../../broker/network/synthetic.ts";

/** dns-packet's types leave the code out. */
export type Reply = DecodedPacket & { rcode: string };

export const OPT: OptAnswer = {
  type: "OPT",
  name: ".",
  udpPayloadSize: 4096,
  extendedRcode: 0,
  ednsVersion: 0,
  flags: 0,
  flag_do: false,
  options: [],
};

export class WorldStub implements Disposable {
  readonly refused: string[] = [];
  readonly faults: unknown[] = [];
  readonly addresses: SyntheticAddresses;
  readonly stub: DnsStub;
  readonly udpPort: number;
  readonly tcpPort: number;

  static async start(allowed: readonly string[], own: Partial<StubAnswers> = {}): Promise<WorldStub> {
    const udp = createSocket("udp4");
    udp.bind(0, "127.0.0.1");
    const tcp = createServer();
    tcp.listen(0, "127.0.0.1");
    await Promise.all([once(udp, "listening"), once(tcp, "listening")]);
    return new WorldStub(udp, tcp, allowed, own);
  }

  private constructor(
    udp: Socket,
    tcp: ReturnType<typeof createServer>,
    allowed: readonly string[],
    own: Partial<StubAnswers>,
  ) {
    this.addresses = new SyntheticAddresses();
    this.udpPort = udp.address().port;
    this.tcpPort = (tcp.address() as AddressInfo).port;
    this.stub = new DnsStub(
      { udp, tcp },
      {
        spell,
        decide: (name) => allowed.includes(name),
        standing: () => "found",
        addressOf: (name) => this.addresses.addressOf(name),
        onRefused: (name, type) => this.refused.push(`${type} ${name}`),
        onFault: (error) => this.faults.push(error),
        ...own,
      },
    );
  }

  /** One datagram, one reply, as a packet and as bytes. */
  async ask(message: Buffer): Promise<{ packet: Reply; bytes: Buffer }> {
    using client = new UdpClient(this.udpPort);
    client.send(message);
    const bytes = await client.next();
    return { packet: readReply(bytes), bytes };
  }

  async askName(name: string, type: string, more: Packet = {}): Promise<Reply> {
    return (await this.ask(question(name, type, more))).packet;
  }

  [Symbol.dispose](): void {
    this.stub.close();
  }
}

export function readReply(bytes: Buffer): Reply {
  return decode(bytes) as Reply;
}

export class UdpClient implements Disposable {
  readonly #socket = createSocket("udp4");
  readonly #port: number;

  constructor(port: number) {
    this.#port = port;
  }

  send(message: Buffer): void {
    this.#socket.send(message, this.#port, "127.0.0.1");
  }

  /** The next reply; rejects when none comes within two seconds. */
  async next(): Promise<Buffer> {
    const [bytes] = (await once(this.#socket, "message", { signal: AbortSignal.timeout(2000) })) as [Buffer];
    return bytes;
  }

  [Symbol.dispose](): void {
    this.#socket.close();
  }
}

/** What comes over one TCP connection until it ends, or until that many bytes are there. */
export async function exchange(port: number, bytes: Buffer, most = Infinity): Promise<Buffer> {
  const socket = connect(port, "127.0.0.1");
  socket.write(bytes);
  const got: Buffer[] = [];
  try {
    for await (const chunk of socket) {
      got.push(chunk as Buffer);
      if (Buffer.concat(got).length >= most) break;
    }
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ECONNRESET")) throw error;
  } finally {
    socket.destroy();
  }
  return Buffer.concat(got);
}

export function framed(message: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length);
  return Buffer.concat([length, message]);
}

/** A query by dns-packet; RD set, as stub resolvers do. */
export function question(name: string, type: string, more: Packet = {}): Buffer {
  const questions = [{ name, type, class: "IN" }] as NonNullable<Packet["questions"]>;
  return encode({ type: "query", id: 0x1234, flags: 0x0100, questions, ...more });
}

/** A query with labels of any bytes, and any type and class. */
export function rawQuestion(labels: readonly (string | Buffer)[], type = 1, kind = 1): Buffer {
  const head = Buffer.from([0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
  const name = labels.map((label) => {
    const bytes = typeof label === "string" ? Buffer.from(label, "latin1") : label;
    return Buffer.concat([Buffer.from([bytes.length]), bytes]);
  });
  return Buffer.concat([head, ...name, Buffer.from([0, type >> 8, type & 255, kind >> 8, kind & 255])]);
}

/** The one spelling of names as these tests need it; the product's is `hostName` of `broker/network/names/names.ts`. */
export function spell(text: string): string | null {
  const name = text.toLowerCase();
  return /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/.test(name) ? name : null;
}
