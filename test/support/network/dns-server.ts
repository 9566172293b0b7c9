import { createSocket } from "node:dgram";
import { once } from "node:events";
import type { Duplex } from "node:stream";
import { isIPv4 } from "node:net";
import {
  type Answer,
  AUTHORITATIVE_ANSWER,
  decode,
  encode,
  RECURSION_AVAILABLE,
  RECURSION_DESIRED,
  TRUNCATED_RESPONSE,
} from "dns-packet";
import type { SeenQuestion, Zone, ZoneEntry } from "./messages.ts";
import type { Witness } from "./witness.ts";

const TTL_SECONDS = 60;

const FLAGS = AUTHORITATIVE_ANSWER | RECURSION_DESIRED | RECURSION_AVAILABLE;

/** RFC 1035 §4.1.1, the lowest bits of the flags. */
const RCODES = { NOERROR: 0, SERVFAIL: 2, NXDOMAIN: 3, REFUSED: 5 } as const;

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
    const { id, questions } = decode(message);
    const [question] = questions ?? [];
    if (question === undefined || questions?.length !== 1)
      throw new Error(`Expected a message with one question, received ${message.length} bytes`);
    const { name, type } = question;
    this.#witness.questions.push({ name, type, over });
    const reply = (flags: number, answers: Answer[]): Buffer =>
      encode({
        type: "response",
        ...(id === undefined ? {} : { id }),
        flags: FLAGS | flags,
        questions: [question],
        answers,
      });
    const entry = this.#find(name);
    if (entry === undefined) return reply(RCODES.NXDOMAIN, []);
    if ("silent" in entry) return null;
    if ("rcode" in entry) return reply(RCODES[entry.rcode], []);
    if ("cut" in entry && over === "udp") return reply(TRUNCATED_RESPONSE, []);
    return reply(RCODES.NOERROR, this.#records(type, name, entry));
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

  #records(type: string, name: string, entry: ZoneEntry): Answer[] {
    if ("silent" in entry || "rcode" in entry) return [];
    const ttl = entry.ttl ?? TTL_SECONDS;
    if ("alias" in entry) {
      const target = this.#find(entry.alias);
      const behind = target === undefined ? [] : this.#records(type, entry.alias, target);
      return [{ type: "CNAME", name, ttl, data: entry.alias }, ...behind];
    }
    const addresses = "turns" in entry ? this.#turn(`${name.toLowerCase()} ${type}`, entry) : entry.addresses;
    return addresses
      .map((data): Answer => ({ type: isIPv4(data) ? "A" : "AAAA", name, ttl, data }))
      .filter((answer) => answer.type === type);
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
