/** Explains why a port is not published. */
import { readdir, readFile, readlink } from "node:fs/promises";

/** Lower ports need privileges unless net.ipv4.ip_unprivileged_port_start is lower (ip-sysctl). */
const UNPRIVILEGED = 1024;

export type Problem = {
  readonly kind: "published" | "taken" | "refused" | "no_network" | "no_world";
  /** The part an agent may know, without other agents or host programs. */
  readonly reason: string;
  /** For the operator. */
  readonly message: string;
  readonly hint: string;
};

export function isProblem(value: object): value is Problem {
  return "reason" in value;
}

/** `owner` describes the other session's owner; `port` is the target inside the other world. */
export function publishedAlready(hostPort: number, owner: string, port: number): Problem {
  return {
    kind: "published",
    reason: "the host's port already leads to another world or port",
    message: `Port ${hostPort} of the host already leads to port ${port} of the world of ${owner}`,
    hint: "Choose another port of the host with 'host_port' (--host-port), or close that one first",
  };
}

export function noNetwork(port: number, word: string): Problem {
  const [why, hint] = word.startsWith("off")
    ? [
        "commands have the host's network",
        `Nothing needs to be published: a server of theirs listens on the host's own port ${port}`,
      ]
    : [
        "this world's network cannot be reached from the host",
        "'substrate world doctor' shows what this host lacks and how to mend it",
      ];
  return {
    kind: "no_network",
    reason: why,
    message: `Cannot publish port ${port}: ${why} (net is '${word}')`,
    hint,
  };
}

export function noWorld(port: number): Problem {
  return {
    kind: "no_world",
    reason: "the session has no world",
    message: `Cannot publish port ${port}: the session's world has ended`,
    hint: "Run a command there, then try again",
  };
}

/** Explains a listener's errno on the host's port. */
export async function notOpened(hostPort: number, errno: string): Promise<Problem> {
  return errno === "EADDRINUSE" ? taken(hostPort, await portHolder(hostPort)) : refusedBy(hostPort, errno);
}

function taken(hostPort: number, holder: string | undefined): Problem {
  return {
    kind: "taken",
    reason: "the host's port is taken",
    message: `Port ${hostPort} of the host is taken by ${holder ?? "a program that the broker cannot see"}`,
    hint: "End that program, or choose another port of the host with 'substrate world publish --host-port'",
  };
}

function refusedBy(hostPort: number, errno: string): Problem {
  const isLow = errno === "EACCES" && hostPort < UNPRIVILEGED;
  const why = isLow ? `it is below ${UNPRIVILEGED}, and the broker's user may not open it` : errno;
  return {
    kind: "refused",
    reason: "the host's kernel refuses the port",
    message: `The kernel refuses port ${hostPort} of the host: ${why}`,
    hint: isLow
      ? "Choose a higher port of the host with 'substrate world publish --host-port', or lower net.ipv4.ip_unprivileged_port_start"
      : "Choose another port of the host with 'substrate world publish --host-port'",
  };
}

/** State of a listening socket in `/proc/net/tcp` (include/net/tcp_states.h: TCP_LISTEN). */
const LISTENING = "0A";

/**
 * 127.0.0.1 and the wildcard addresses, as IPv4, IPv6 and mapped IPv4: words in host byte order, little-endian here.
 */
const COVERING: ReadonlySet<string> = new Set([
  "0100007F",
  "00000000",
  "0".repeat(32),
  "0000000000000000FFFF00000100007F",
]);

type Listener = { readonly inode: string; readonly uid: string };

/**
 * Describes the program that occupies 127.0.0.1:`port`; undefined when gone or invisible. Reads every process of this
 * user (as root, of all users), so call only after an error.
 */
async function portHolder(port: number): Promise<string | undefined> {
  const listener = (await Promise.all(["tcp", "tcp6"].map((kind) => listenerIn(kind, port)))).find(
    (found) => found !== undefined,
  );
  if (listener === undefined) return undefined;
  const pid = await processWith(`socket:[${listener.inode}]`);
  if (pid === undefined) return `a program of user ${listener.uid}`;
  const name = await readFile(`/proc/${pid}/comm`, "utf8").catch(() => "");
  return name === "" ? `process ${pid}` : `process ${pid} (${name.trim()})`;
}

/** proc(5), /proc/net/tcp: number, local and remote address, state, queues, timer, retransmits, uid, timeout, inode. */
async function listenerIn(kind: string, port: number): Promise<Listener | undefined> {
  // A host without IPv6 has no such file, ignoring: nobody listens there.
  const table = await readFile(`/proc/self/net/${kind}`, "latin1").catch(() => "");
  const wanted = port.toString(16).toUpperCase().padStart(4, "0");
  for (const line of table.split("\n").slice(1)) {
    const [, local = "", , state, , , , uid = "", , inode = ""] = line.trim().split(/\s+/);
    const [address = "", its] = local.split(":");
    if (state === LISTENING && its === wanted && COVERING.has(address)) return { inode, uid };
  }
  return undefined;
}

async function processWith(link: string): Promise<string | undefined> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  for (const pid of pids) {
    // Process gone or another user's, ignoring: its sockets are invisible.
    const open = await readdir(`/proc/${pid}/fd`).catch(() => []);
    for (const fd of open) if ((await readlink(`/proc/${pid}/fd/${fd}`).catch(() => "")) === link) return pid;
  }
  return undefined;
}
