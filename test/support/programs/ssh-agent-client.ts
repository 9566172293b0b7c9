/** What a client of ssh-agent sends: messages of draft-miller-ssh-agent, for the agent's own socket and for the broker's. */
import { generateKeyPairSync, randomBytes, sign } from "node:crypto";
import { messagesOf } from "../../../broker/ssh-agent/messages.ts";

/** A text or bytes with their length before them (RFC 4251, string). */
export function string(content: string | Buffer): Buffer {
  const bytes = Buffer.from(content as string);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

/** A message: its type, and what it holds. */
export function message(type: number, ...content: readonly Buffer[]): Buffer {
  return string(Buffer.concat([Buffer.from([type]), ...content]));
}

export const LIST: Buffer = message(11);
export const REMOVE_ALL: Buffer = message(19);

export function extension(name: string, ...content: readonly Buffer[]): Buffer {
  return message(27, string(name), ...content);
}

/** All that a stream holds until its end. */
export async function messagesIn(stream: AsyncIterable<Buffer>): Promise<readonly Buffer[]> {
  const messages: Buffer[] = [];
  for await (const each of messagesOf(stream)) messages.push(each);
  return messages;
}

/** `session-bind@openssh.com` with a host key made for it, whose signature the agent verifies (OpenSSH, PROTOCOL.agent). */
export function sessionBind(isSigned = true): Buffer {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const session = randomBytes(32);
  // The key itself is the end of its SubjectPublicKeyInfo (RFC 8410).
  const key = publicKey.export({ format: "der", type: "spki" }).subarray(-32);
  const signature = sign(null, isSigned ? session : randomBytes(32), privateKey);
  return extension(
    "session-bind@openssh.com",
    string(Buffer.concat([string("ssh-ed25519"), string(key)])),
    string(session),
    string(Buffer.concat([string("ssh-ed25519"), string(signature)])),
    Buffer.from([0]),
  );
}

/**
 * A program for Node: sends the bytes of its first argument (hex) to $SSH_AUTH_SOCK, ends its half, and prints the type of each answer,
 * and `closed`.
 */
export const CLIENT = `
const [hex] = process.argv.slice(1);
const socket = require("node:net").connect(process.env.SSH_AUTH_SOCK);
const chunks = [];
socket.on("data", (chunk) => chunks.push(chunk)).on("error", () => undefined);
socket.on("close", () => {
  let bytes = Buffer.concat(chunks);
  const types = [];
  while (bytes.length > 4) {
    types.push(bytes[4]);
    bytes = bytes.subarray(4 + bytes.readUInt32BE());
  }
  console.log([...types, "closed"].join(" "));
});
socket.end(Buffer.from(hex, "hex"));
`;
