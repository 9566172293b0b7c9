/** Who has a port of this host, for a person who wonders. */
import { readdir, readFile, readlink } from "node:fs/promises";

/** What `/proc/net/tcp` calls a socket that listens (include/net/tcp_states.h: TCP_LISTEN). */
const LISTENING = "0A";

/** 127.0.0.1 and every address, as v4, v6 and v4 in v6: words in the host's order, which is little-endian here. */
const COVERING: ReadonlySet<string> = new Set([
  "0100007F",
  "00000000",
  "0".repeat(32),
  "0000000000000000FFFF00000100007F",
]);

type Listener = { readonly inode: string; readonly uid: string };

/**
 * The program that listens where 127.0.0.1:`port` would be, in words; undefined when it is gone, or is not to be seen. Reads
 * every process of this user (all of them, as root), so it is for the way of an error.
 */
export async function portHolder(port: number): Promise<string | undefined> {
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
  // A host without IPv6 has no such file, ignoring: then nobody listens there.
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
    // Gone meanwhile, or another user's, ignoring: it is not to be seen.
    const open = await readdir(`/proc/${pid}/fd`).catch(() => []);
    for (const fd of open) if ((await readlink(`/proc/${pid}/fd/${fd}`).catch(() => "")) === link) return pid;
  }
  return undefined;
}
