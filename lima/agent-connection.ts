/** A broker's connection to a world agent: the handshake, and the streams beside it. */
import type { IncomingMessage } from "node:http";
import { lstatSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { WebSocket } from "ws";
import { WorldUnavailable } from "../world/backend.ts";
import { Peer, type Side } from "../world/wire/peer.ts";
import {
  type AgentCalls,
  type AgentTells,
  type BrokerCalls,
  type BrokerTells,
  CONNECT_PATH,
  MAX_MESSAGE,
  PROTOCOL,
  PROTOCOL_HEADER,
  STORE_HEADER,
  STREAM_PATH,
  VERSION_HEADER,
} from "../world/wire/protocol.ts";
import { StreamSocket } from "../world/wire/stream-socket.ts";

export type ToAgent = Peer<AgentCalls, AgentTells, BrokerCalls, BrokerTells>;

export type AgentPlace = {
  /** The agent's Unix socket, or the end of a forward that leads there. */
  readonly socket: string;
  /** The broker's version, and a name for its home (16 hexadecimal digits). */
  readonly version: string;
  readonly store: string;
  /** Who may own the socket besides root: whoever owns it hears every command. */
  readonly uid: number;
  /** What starts the agent, for a hint. */
  readonly remedy: string;
};

const HANDSHAKE_MS = 5000;

/** An answer to a refused handshake; the agent's own has a few hundred bytes. */
const MOST_REFUSAL = 16 * 1024;

/** Throws {@link WorldUnavailable} with the agent's own reason, or with what keeps the socket from answering. */
export async function connectAgent(
  place: AgentPlace,
  side: Side<BrokerCalls, BrokerTells>,
): Promise<ToAgent> {
  refuseForeign(place);
  const socket = open(place, CONNECT_PATH);
  await new Promise<void>((resolve, reject) => {
    let theirs: IncomingMessage | undefined;
    socket.once("upgrade", (response) => {
      theirs = response;
    });
    socket.once("open", () => {
      const refusal = theirs === undefined ? undefined : otherProtocol(place, theirs);
      if (refusal === undefined) return resolve();
      socket.terminate();
      reject(refusal);
    });
    socket.once("unexpected-response", (request, response) => {
      void refusalIn(place, response).then((refusal) => {
        request.destroy();
        reject(refusal);
      });
    });
    socket.once("error", (error) => reject(unreachable(place, error)));
  });
  return new Peer(socket, side);
}

/** Opens a connection of a world by its token. */
export function openStream(place: AgentPlace, token: string): StreamSocket {
  return new StreamSocket(open(place, `${STREAM_PATH}${token}`));
}

function open({ socket, version, store }: AgentPlace, path: string): WebSocket {
  return new WebSocket(`ws://agent${path}`, {
    createConnection: (): Socket => connect({ path: socket }),
    headers: { [PROTOCOL_HEADER]: String(PROTOCOL), [VERSION_HEADER]: version, [STORE_HEADER]: store },
    perMessageDeflate: false,
    maxPayload: MAX_MESSAGE,
    handshakeTimeout: HANDSHAKE_MS,
  });
}

/** Another user's socket would hear every command and invent its result. */
function refuseForeign({ socket, uid, remedy }: AgentPlace): void {
  const stat = lstatSync(socket, { throwIfNoEntry: false });
  if (stat === undefined)
    throw new WorldUnavailable(`No world agent answers on '${socket}' (ENOENT)`, remedy);
  if (!stat.isSocket()) throw new WorldUnavailable(`'${socket}' is no socket of a world agent`, remedy);
  if (stat.uid !== uid && stat.uid !== 0)
    throw new WorldUnavailable(
      `The socket '${socket}' belongs to user ${stat.uid}, not to user ${uid}: its owner would hear every command`,
      "Set SUBSTRATE_AGENT_SOCKET to the socket of your own world agent",
    );
}

function otherProtocol({ version, socket }: AgentPlace, { headers }: IncomingMessage): Error | undefined {
  const theirs = headers[PROTOCOL_HEADER];
  if (theirs === String(PROTOCOL)) return undefined;
  return new WorldUnavailable(
    `'${socket}' speaks protocol ${String(theirs)} of the world agent, and this broker (substrate ${version}) protocol ${PROTOCOL}`,
    SAME_VERSION,
  );
}

const SAME_VERSION = "Install the same version of substrate on both sides, then start the agent again";

async function refusalIn({ socket, remedy }: AgentPlace, response: IncomingMessage): Promise<Error> {
  let text = "";
  try {
    for await (const bytes of response) {
      text += String(bytes);
      if (text.length > MOST_REFUSAL) break;
    }
    const { error } = JSON.parse(text) as { error: { message: string; hint: string } };
    return new WorldUnavailable(`The world agent refused: ${error.message}`, error.hint);
  } catch {
    // Another server, ignoring: what it sent tells nothing.
    return new WorldUnavailable(
      `'${socket}' is no world agent: it answered with status ${response.statusCode}`,
      remedy,
    );
  }
}

function unreachable({ socket, remedy }: AgentPlace, error: NodeJS.ErrnoException): Error {
  const why = error.code ?? error.message;
  return new WorldUnavailable(`No world agent answers on '${socket}' (${why})`, remedy, { cause: error });
}
