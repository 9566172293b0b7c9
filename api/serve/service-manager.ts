/** What a service manager hands to the broker and hears from it: listening sockets (sd_listen_fds(3)), states and watchdog (sd_notify(3)). */
import { fstatSync, readFileSync, readlinkSync, writeSync } from "node:fs";

/** First of the descriptors that systemd hands over (SD_LISTEN_FDS_START). */
const FIRST = 3;

/** Signs of life in one WatchdogSec: two may come late. */
const SIGNS = 3;

/** Error: the service manager's sockets or messages cannot be used. */
export class HandOverRefused extends Error {
  override readonly name = "HandOverRefused";
}

type Environment = Readonly<Record<string, string | undefined>>;

export type ServiceManager = {
  /** Descriptors of sockets that listen already, by path. */
  readonly sockets: Map<string, number>;
  /** Sends a state such as `READY=1`. */
  readonly tell: (state: string) => void;
  /** Interval of `WATCHDOG=1`; undefined where nobody waits for it. */
  readonly watchdogMs: number | undefined;
};

/** Variables for this process alone: what the broker starts must not take them for its own. */
const OWN =
  /^(LISTEN_(FDS|PID|FDNAMES|PIDFDID)|WATCHDOG_(PID|USEC)|NOTIFY_SOCKET|SUBSTRATE_NOTIFY_FD|INVOCATION_ID)$/;

export function withoutServiceManager(environment: Environment): Environment {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !OWN.test(name)));
}

/** Reads what the manager left in the environment of process `pid`, this one. Throws {@link HandOverRefused}. */
export function serviceManager(environment: Environment, pid: number): ServiceManager {
  return {
    sockets: socketsFor(environment, pid),
    tell: tellBy(environment),
    watchdogMs: watchdogMs(environment, pid),
  };
}

function socketsFor(environment: Environment, pid: number): Map<string, number> {
  const count = Number(environment["LISTEN_FDS"] ?? 0);
  if (Number(environment["LISTEN_PID"]) !== pid || !Number.isInteger(count)) return new Map();
  const paths = pathsByInode(readFileSync("/proc/self/net/unix", "utf8"));
  const descriptors = Array.from({ length: count }, (_, at) => FIRST + at);
  return new Map(
    descriptors.map((fd) => {
      const path = paths.get(inodeOf(fd));
      if (path === undefined)
        throw new HandOverRefused(
          `Cannot use descriptor ${fd} from the service manager: it is no listening Unix socket with a path`,
        );
      return [path, fd];
    }),
  );
}

/** Paths of listening stream sockets in the text of `/proc/net/unix` (proc(5)): flag 0x10000, type 1. The path may hold spaces. */
export function pathsByInode(table: string): ReadonlyMap<string, string> {
  const rows = table.split("\n").flatMap((line) => {
    const [, flags, type, inode, path] = /^\S+ \S+ \S+ (\S+) (\S+) \S+ +(\d+) (\/.*)$/.exec(line) ?? [];
    const listens = flags === "00010000" && type === "0001";
    return listens && inode !== undefined && path !== undefined ? [[inode, path] as const] : [];
  });
  return new Map(rows);
}

function inodeOf(fd: number): string {
  try {
    return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${fd}`))?.[1] ?? "";
  } catch {
    return "";
  }
}

/** The front has connected the descriptor (shim/front/notify.c). */
function tellBy(environment: Environment): (state: string) => void {
  const fd = environment["SUBSTRATE_NOTIFY_FD"];
  if (fd === undefined) {
    if (environment["NOTIFY_SOCKET"] === undefined) return () => {};
    throw new HandOverRefused(
      "Cannot tell the service manager that the broker is ready: a unit with Type=notify must start '.build/substrate', which opens NOTIFY_SOCKET for Node",
    );
  }
  if (!/^\d+$/.test(fd) || !isSocket(Number(fd)))
    throw new HandOverRefused(`Cannot use SUBSTRATE_NOTIFY_FD='${fd}': it is no open socket`);
  return (state) => {
    try {
      writeSync(Number(fd), state);
    } catch {
      // A manager that restarts or does not read, ignoring: what it misses ends or starts the broker, as it would with a stuck broker.
    }
  };
}

function isSocket(fd: number): boolean {
  try {
    return fstatSync(fd).isSocket();
  } catch {
    return false;
  }
}

function watchdogMs(environment: Environment, pid: number): number | undefined {
  const micros = Number(environment["WATCHDOG_USEC"]);
  const whose = environment["WATCHDOG_PID"];
  if (!(micros > 0) || (whose !== undefined && Number(whose) !== pid)) return undefined;
  return Math.max(1, Math.floor(micros / 1000 / SIGNS));
}
