import { createSocket } from "node:dgram";
import { once } from "node:events";
import type { Duplex } from "node:stream";
import { type DnsRecord, RCODES, readQuestion, writeAnswer, writeCutAnswer } from "./dns-message.ts";
import { isIPv4 } from "node:net";
import type { SeenQuestion, Zone, ZoneEntry } from "./messages.ts";
import type { Witness } from "./witness.ts";

const TTL_SECONDS = 60;

/** Answers from a zone, over whatever carries the question, and counts what was asked. */
export class DnsServer {
  readonly #witness: Witness;
  #zone: Zone;
  /** How many questions each name and type had. */
  #asked = new Map<string, number>();

  constructor(zone: Zone, witness: Witness) {
    this.#zone = zone;
    this.#witness = witness;
  }

  /** Another zone from now on, whose names take their turns from the first. */
  use(zone: Zone): void {
    this.#zone = zone;
    this.#asked = new Map();
  }

  /** The answer, or null where the zone says silence. Throws when the message has no question. */
  answer(message: Buffer, over: SeenQuestion["over"]): Buffer | null {
    const question = readQuestion(message);
    this.#witness.questions.push({ name: question.name, type: question.type, over });
    const entry = this.#find(question.name);
    if (entry === undefined) return writeAnswer(question, RCODES.NXDOMAIN, []);
    if ("silent" in entry) return null;
    if ("rcode" in entry) return writeAnswer(question, RCODES[entry.rcode], []);
    if ("cut" in entry && over === "udp") return writeCutAnswer(question);
    return writeAnswer(question, RCODES.NOERROR, this.#records(question.type, question.name, entry));
  }

  /** UDP on one port of every address. */
  async listen(port: number): Promise<void> {
    const socket = createSocket({ type: "udp6" });
    socket.on("message", (message, { address, port: from }) => {
      const answer = this.#answerOrNothing(message, "udp");
      if (answer !== null) socket.send(answer, from, address);
    });
    socket.bind(port, "::");
    await once(socket, "listening");
  }

  /** Messages with their length before them (RFC 1035, 4.2.2), over TCP or TLS. */
  serve(stream: Duplex, over: "tcp" | "tls"): void {
    let kept = Buffer.alloc(0);
    stream.on("data", (bytes: Buffer) => {
      kept = Buffer.concat([kept, bytes]);
      while (kept.length >= 2 && kept.length >= 2 + kept.readUInt16BE(0)) {
        const end = 2 + kept.readUInt16BE(0);
        const answer = this.#answerOrNothing(kept.subarray(2, end), over);
        kept = kept.subarray(end);
        if (answer !== null) stream.write(Buffer.concat([lengthOf(answer), answer]));
      }
    });
  }

  /** What is no question is nothing to answer. */
  #answerOrNothing(message: Buffer, over: SeenQuestion["over"]): Buffer | null {
    try {
      return this.answer(message, over);
    } catch {
      this.#witness.questions.push({ name: `${message.length} bytes`, type: "none", over });
      return null;
    }
  }

  #find(name: string): ZoneEntry | undefined {
    const labels = name.toLowerCase().split(".");
    const wildcards = labels.map((_, index) => `*.${labels.slice(index + 1).join(".")}`);
    const found = [labels.join("."), ...wildcards].find((candidate) => candidate in this.#zone);
    return found === undefined ? undefined : this.#zone[found];
  }

  #records(type: string, owner: string, entry: ZoneEntry): DnsRecord[] {
    if ("silent" in entry || "rcode" in entry) return [];
    const ttl = entry.ttl ?? TTL_SECONDS;
    if ("alias" in entry) {
      const target = this.#find(entry.alias);
      const behind = target === undefined ? [] : this.#records(type, entry.alias, target);
      return [{ owner, ttl, alias: entry.alias }, ...behind];
    }
    const addresses =
      "turns" in entry ? this.#turn(`${owner.toLowerCase()} ${type}`, entry) : entry.addresses;
    return addresses
      .filter((address) => type === (isIPv4(address) ? "A" : "AAAA"))
      .map((address) => ({ owner, ttl, address }));
  }

  #turn(key: string, { turns, then }: Extract<ZoneEntry, { turns: unknown }>): readonly string[] {
    const asked = this.#asked.get(key) ?? 0;
    this.#asked.set(key, asked + 1);
    const index = then === "again" ? asked % turns.length : Math.min(asked, turns.length - 1);
    return turns[index] ?? [];
  }
}

function lengthOf(bytes: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(bytes.length);
  return length;
}
