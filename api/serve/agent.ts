/** `substrate agent`: runs a world agent from the start to the stop signal. */
import type { Server } from "node:http";
import { dirname, join, resolve } from "node:path";
import { mkdirSync } from "node:fs";
import type { WorldBackend } from "../../broker/broker.ts";
import { type Home, HomeRefused, prepareHome } from "../../broker/settings/home.ts";
import { claimStart } from "./claim.ts";
import { tellReady, untilSignal } from "./process.ts";
import { serviceManager } from "./service-manager.ts";
import { closeSocket, openSocket } from "./sockets.ts";

export type ServedAgent = {
  readonly backend: WorldBackend;
  readonly agent: { readonly server: Server; readonly drain: () => Promise<void> };
};

type At = {
  readonly home: Home;
  readonly uid: number;
  readonly createAgent: () => Promise<ServedAgent>;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly err: { write(text: string): unknown };
};

/** `sun_path` is 108 bytes with its NUL (unix(7)). */
const MAX_SOCKET_PATH = 107;

/** Longer than any held change is kept: only what ended worlds left behind goes. */
const NEVER_MS = Number.MAX_SAFE_INTEGER;

/**
 * Serves until SIGTERM, SIGINT or SIGHUP. Its home is no broker's: both would sweep the other's folders. The socket is its owner's alone
 * (0600), and that is all that tells a broker from a stranger.
 */
export async function serveAgent(at: At, asked: string | undefined): Promise<number> {
  const { home, uid, environment, err } = at;
  const path = asked === undefined ? join(home.root, "sock/world-agent.sock") : resolve(asked);
  if (Buffer.byteLength(path) > MAX_SOCKET_PATH)
    throw new HomeRefused(
      `Cannot listen on '${path}': it has ${Buffer.byteLength(path)} bytes; the kernel accepts ${MAX_SOCKET_PATH}`,
    );
  prepareHome(home, uid);
  const claim = claimStart(home.startLock);
  const asksToStop = untilSignal();
  try {
    const manager = serviceManager(environment, process.pid);
    const { backend, agent } = await at.createAgent();
    await backend.expireHeld(home.overlay, NEVER_MS);
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const open = await openSocket(agent.server, path, manager.sockets);
    const signs = tellReady(manager);
    err.write(`substrate: the world agent listens on '${path}'\n`);
    const signal = await asksToStop;
    manager.tell("STOPPING=1");
    err.write(`substrate: the world agent stops (${signal})\n`);
    closeSocket(open);
    await agent.drain();
    clearInterval(signs);
  } finally {
    claim.release();
  }
  return 0;
}
