import { chmodSync, mkdirSync } from "node:fs";
import { join } from "node:path";

/** `sun_path` is 108 bytes with its NUL (unix(7)); Node cuts longer ones without a word. */
const MAX_SOCKET_PATH = 107;

/** Longest name of a socket that may have to fit: `sock/agents/` and an agent of 40 characters. */
const LONGEST_SOCKET = "sock/control.sock";

/** SUBSTRATE_HOME cannot be used as it is. */
export class HomeRefused extends Error {
  override readonly name = "HomeRefused";
}

/** Where everything lies below SUBSTRATE_HOME (CONTRACT §2). All absolute. */
export type Home = {
  readonly root: string;
  readonly agentSocket: string;
  readonly controlSocket: string;
  readonly agentSockets: string;
  readonly config: string;
  readonly policies: string;
  readonly trace: string;
  readonly database: string;
  readonly overlay: string;
  readonly brokerFile: string;
  readonly startLock: string;
  readonly log: string;
};

/**
 * The layout below `root`. `overlay` is where upper and work folders go when it is not below `root`
 * (a privileged broker keeps them in `/var/lib`). Throws {@link HomeRefused} when a socket path would be too long.
 */
export function homeLayout(root: string, overlay: string | undefined): Home {
  const longest = join(root, LONGEST_SOCKET);
  if (Buffer.byteLength(longest) > MAX_SOCKET_PATH) {
    throw new HomeRefused(
      `Cannot use '${root}' as SUBSTRATE_HOME: the socket path '${longest}' has ${Buffer.byteLength(longest)} bytes and the kernel takes ${MAX_SOCKET_PATH}. Choose a shorter folder`,
    );
  }
  return {
    root,
    agentSocket: join(root, "sock/agent.sock"),
    controlSocket: join(root, "sock/control.sock"),
    agentSockets: join(root, "sock/agents"),
    config: join(root, "config.yaml"),
    policies: join(root, "policies"),
    trace: join(root, "trace/trace.jsonl"),
    database: join(root, "db"),
    overlay: overlay ?? join(root, "overlay"),
    brokerFile: join(root, "run/broker.json"),
    startLock: join(root, "run/start.lock"),
    log: join(root, "log/broker.log"),
  };
}

/** The path of a named agent's own socket. Throws {@link HomeRefused} when it is too long for the kernel. */
export function agentSocketPath(home: Home, agent: string): string {
  const path = join(home.agentSockets, `${agent}.sock`);
  if (Buffer.byteLength(path) <= MAX_SOCKET_PATH) return path;
  throw new HomeRefused(
    `Cannot open a socket for agent '${agent}': '${path}' is longer than ${MAX_SOCKET_PATH} bytes`,
  );
}

/** Makes the folders, for the owner's eyes only. Safe to repeat. */
export function prepareHome(home: Home): void {
  mkdirSync(home.root, { recursive: true, mode: 0o700 });
  chmodSync(home.root, 0o700);
  for (const name of ["sock", "sock/agents", "policies", "trace", "db", "homes", "shims", "run", "log"]) {
    mkdirSync(join(home.root, name), { recursive: true, mode: 0o700 });
  }
  mkdirSync(home.overlay, { recursive: true, mode: 0o700 });
}
