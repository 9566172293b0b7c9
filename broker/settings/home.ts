import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { realPlace } from "../model/real-place.ts";

/** `sun_path` has 108 bytes with its NUL (unix(7)), 104 on BSD; Node truncates longer paths silently. */
export const MAX_SOCKET_PATH = process.platform === "linux" ? 107 : 103;

/** The longest socket path present in every home; a named agent's path is checked when opened. */
const LONGEST_SOCKET = "sock/control.sock";

/** SUBSTRATE_HOME cannot be used. */
export class HomeRefused extends Error {
  override readonly name = "HomeRefused";
}

/** The layout below SUBSTRATE_HOME. All paths are absolute. */
export type Home = {
  readonly root: string;
  readonly agentSocket: string;
  readonly controlSocket: string;
  readonly agentSockets: string;
  /** The broker's socket in front of the person's ssh-agent, for worlds. */
  readonly sshAgentSocket: string;
  readonly config: string;
  /** Approvals given for always. */
  readonly approvals: string;
  readonly policies: string;
  readonly trace: string;
  readonly database: string;
  readonly overlay: string;
  /** Denied names made by commands, moved out of projects. */
  readonly quarantine: string;
  /** What commands did to the remotes of repositories. */
  readonly gitRemotes: string;
  /** Homes of commands that have one of their own, by profile. */
  readonly homes: string;
  /** The folder to put first on PATH. */
  readonly shims: string;
  /** Agents' settings files that `substrate init` changed: records, and copies of the files before. */
  readonly connections: string;
  /** Hidden in every world: this home, and the held changes of every home. */
  readonly hidden: readonly string[];
  /** Sockets of the container backends. */
  readonly containers: string;
  readonly brokerFile: string;
  readonly startLock: string;
  readonly log: string;
};

/**
 * Returns the layout below `asked`. `askedOverlay` is the folder of upper and work folders, if outside `asked` (a privileged
 * broker uses `/var/lib`). Links in both paths are resolved: worlds mount from there, and follow no link. Throws
 * {@link HomeRefused} if a socket path would be too long.
 */
export function homeLayout(asked: string, askedOverlay: string | undefined): Home {
  const root = realPlace(asked);
  const overlay = askedOverlay === undefined ? undefined : realPlace(askedOverlay);
  const longest = join(root, LONGEST_SOCKET);
  if (Buffer.byteLength(longest) > MAX_SOCKET_PATH) {
    throw new HomeRefused(
      `Cannot use '${asked}' as SUBSTRATE_HOME: the socket path '${longest}' has ${Buffer.byteLength(longest)} bytes; the kernel accepts ${MAX_SOCKET_PATH}. Choose a shorter folder`,
    );
  }
  return {
    root,
    agentSocket: join(root, "sock/agent.sock"),
    controlSocket: join(root, "sock/control.sock"),
    agentSockets: join(root, "sock/agents"),
    // No longer than LONGEST_SOCKET.
    sshAgentSocket: join(root, "sock/ssh.sock"),
    config: join(root, "config.yaml"),
    approvals: join(root, "approvals.yaml"),
    policies: join(root, "policies"),
    trace: join(root, "trace/trace.jsonl"),
    database: join(root, "db"),
    // Each home has its own folder below a shared overlay folder: no broker sweeps the held changes of another.
    overlay:
      overlay === undefined
        ? join(root, "overlay")
        : join(overlay, createHash("sha256").update(root).digest("hex").slice(0, 16)),
    quarantine: join(root, "quarantine"),
    gitRemotes: join(root, "git-remotes"),
    homes: join(root, "homes"),
    shims: join(root, "shims"),
    connections: join(root, "connections"),
    hidden: overlay === undefined ? [root] : [root, overlay],
    containers: join(root, "run/containers"),
    brokerFile: join(root, "run/broker.json"),
    startLock: join(root, "run/start.lock"),
    log: join(root, "log/broker.log"),
  };
}

/** Returns the path of a named agent's own socket. Throws {@link HomeRefused} for a path longer than the kernel accepts. */
export function agentSocketPath(home: Home, agent: string): string {
  const path = join(home.agentSockets, `${agent}.sock`);
  if (Buffer.byteLength(path) <= MAX_SOCKET_PATH) return path;
  throw new HomeRefused(
    `Cannot open a socket for agent '${agent}': '${path}' is longer than ${MAX_SOCKET_PATH} bytes`,
  );
}

/**
 * Makes the folders, accessible only to the owner. Idempotent. Throws {@link HomeRefused} for a folder of another user or with
 * another use: closing such a folder to everybody else would break the other use.
 */
export function prepareHome(home: Home, uid: number): void {
  try {
    mkdirSync(home.root, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new HomeRefused(`Cannot make '${home.root}': ${(error as Error).message}`, { cause: error });
  }
  const why = unfitBecause(home.root, uid);
  if (why !== undefined) throw new HomeRefused(`Cannot use '${home.root}' as SUBSTRATE_HOME: ${why}`);
  chmodSync(home.root, 0o700);
  for (const name of [
    "sock",
    "sock/agents",
    "policies",
    "trace",
    "db",
    "homes",
    "shims",
    "run",
    "log",
    "quarantine",
  ]) {
    mkdirSync(join(home.root, name), { recursive: true, mode: 0o700 });
  }
  mkdirSync(home.overlay, { recursive: true, mode: 0o700 });
}

const OWN_NAMES = ["sock", "run", "policies", "config.yaml"];

function unfitBecause(root: string, uid: number): string | undefined {
  const stat = statSync(root);
  if (stat.uid !== uid) return `it belongs to user ${stat.uid}; this is user ${uid}`;
  const names = readdirSync(root);
  if (names.length === 0 || names.some((name) => OWN_NAMES.includes(name))) return undefined;
  return "it contains other files. Choose a new or an empty folder";
}
