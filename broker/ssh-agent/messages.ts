/** Messages of the ssh-agent protocol (draft-miller-ssh-agent): where they end, and which of them a world may send. */

/** Bytes of a message without its length: ssh-agent's own bound (AGENT_MAX_LEN in OpenSSH's ssh-agent.c). */
export const MAX_MESSAGE = 256 * 1024;

const LENGTH_BYTES = 4;

/** SSH_AGENT_FAILURE, with its length. */
export const FAILURE: Buffer = Buffer.from([0, 0, 0, 1, 5]);

/** A stream that holds no message where one should begin. */
export class NotAMessage extends Error {
  override readonly name = "NotAMessage";
}

const SSH_AGENTC_EXTENSION = 27;

/**
 * Requests that use keys. Left out on purpose, and refused as every unknown request: adding, removing and constraining keys (17, 18, 19,
 * 25), which the person's own ssh would meet later; adding and removing smart cards (20, 21, 26), for which the agent starts
 * ssh-pkcs11-helper on the host and loads a library (CVE-2023-38408); locking and unlocking (22, 23); protocol 1 (1 to 9).
 */
const FORWARDED: readonly { readonly type: number; readonly why: string }[] = [
  { type: 11, why: "SSH_AGENTC_REQUEST_IDENTITIES: the public keys, of which ssh offers one" },
  { type: 13, why: "SSH_AGENTC_SIGN_REQUEST: what the agent is shared for" },
];

/** Extensions can do anything, so only these pass. */
const EXTENSIONS: readonly { readonly name: string; readonly why: string }[] = [
  {
    name: "session-bind@openssh.com",
    why: "tells the agent the host of a connection; keys restricted to hosts need it",
  },
  { name: "query", why: "lists the agent's extensions" },
];

/** Whether a request, with its length, may reach the agent. */
export function isForwarded(request: Buffer): boolean {
  const type = request[LENGTH_BYTES];
  if (type === SSH_AGENTC_EXTENSION) return EXTENSIONS.some(({ name }) => name === extensionOf(request));
  return FORWARDED.some((row) => row.type === type);
}

/** Returns the extension's name; undefined if the message ends before it. */
function extensionOf(request: Buffer): string | undefined {
  const begin = LENGTH_BYTES + 1 + LENGTH_BYTES;
  if (request.length < begin) return undefined;
  const end = begin + request.readUInt32BE(LENGTH_BYTES + 1);
  return end > request.length ? undefined : request.toString("latin1", begin, end);
}

/**
 * Splits a stream into messages, each with its length. Throws {@link NotAMessage} for a length of 0 or beyond {@link MAX_MESSAGE}. A
 * message cut off by the end of the stream is dropped.
 */
export async function* messagesOf(stream: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  let chunks: Buffer[] = [];
  let had = 0;
  let wanted = LENGTH_BYTES;
  for await (const chunk of stream) {
    chunks.push(chunk);
    had += chunk.length;
    // Joined once for each message: its length may be promised first and come byte by byte.
    if (had < wanted) continue;
    let bytes = Buffer.concat(chunks);
    for (wanted = sizeOf(bytes); bytes.length >= wanted; wanted = sizeOf(bytes)) {
      yield bytes.subarray(0, wanted);
      bytes = bytes.subarray(wanted);
    }
    chunks = [bytes];
    had = bytes.length;
  }
}

/** Returns the size of the message at the beginning, with its length; of the length alone while that is incomplete. */
function sizeOf(bytes: Buffer): number {
  if (bytes.length < LENGTH_BYTES) return LENGTH_BYTES;
  const length = bytes.readUInt32BE();
  if (length === 0 || length > MAX_MESSAGE)
    throw new NotAMessage(
      `A message of the ssh-agent protocol has 1 to ${MAX_MESSAGE} bytes, received ${length}`,
    );
  return LENGTH_BYTES + length;
}
