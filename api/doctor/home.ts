/** Checks of Node and SUBSTRATE_HOME, made by using both as a broker would. */
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  statfsSync,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import type { HostCheck, HostFinding } from "../../broker/broker.ts";
import { type Home, MAX_SOCKET_PATH } from "../../broker/settings/home.ts";

const LEAST_NODE = [20, 19] as const;

/** Minimum room for trace, database and held changes; with less room a broker soon refuses commands. */
const LEAST_ROOM = 256 * 1024 * 1024;
const LEAST_FILES = 1000;

export function homeChecks(home: Home, uid: number, node: string): readonly HostCheck[] {
  const check = (name: string, what: string, needed: boolean, run: () => HostFinding): HostCheck => ({
    name,
    what,
    needed,
    run: () => Promise.resolve(run()),
  });
  return [
    check("node", "Node 20.19 or newer", true, () => nodeVersion(node)),
    check("home", "SUBSTRATE_HOME, private and writable", true, () => homeFolder(home, uid)),
    check("room", "disk space for SUBSTRATE_HOME and held changes", false, () => room(home)),
    check("sockets", "sockets that only their owner can use", false, () => sockets(home)),
  ];
}

export function nodeVersion(version: string): HostFinding {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const isEnough = major > LEAST_NODE[0] || (major === LEAST_NODE[0] && minor >= LEAST_NODE[1]);
  return isEnough
    ? { verdict: "ok", seen: version, mend: [] }
    : { verdict: "missing", seen: version, mend: ["# Install Node 20.19 or newer"] };
}

function homeFolder({ root, controlSocket }: Home, uid: number): HostFinding {
  if (!existsSync(root)) {
    const parent = nearestExisting(root);
    const refused = writeRefusal(parent);
    const seen = `'${root}' does not exist yet`;
    if (refused === undefined) return { verdict: "ok", seen: `${seen} and can be made`, mend: [] };
    return {
      verdict: "missing",
      seen: `${seen} and cannot be made in '${parent}': ${refused}`,
      mend: [`mkdir -p '${root}'`],
    };
  }
  const { uid: owner, mode } = statSync(root);
  if (owner !== uid)
    return {
      verdict: "missing",
      seen: `'${root}' belongs to user ${owner}; the broker runs as user ${uid}`,
      mend: [`sudo chown -R ${uid} '${root}'`],
    };
  const refused = writeRefusal(root);
  if (refused !== undefined)
    return {
      verdict: "missing",
      seen: `a write to '${root}' failed with ${refused}`,
      mend: [`chmod 700 '${root}'`, `df -h '${root}'`],
    };
  const bits = (mode & 0o777).toString(8);
  const left = MAX_SOCKET_PATH - Buffer.byteLength(join(dirname(controlSocket), "agents/.sock"));
  const seen = `'${root}' is writable; the name of an agent in config.yaml may have ${left} bytes`;
  if (bits !== "700")
    return { verdict: "weaker", seen: `${seen}; its mode is ${bits}`, mend: [`chmod 700 '${root}'`] };
  return { verdict: "ok", seen: `${seen}; its mode is 700`, mend: [] };
}

/** Tries to write a file into the folder; returns the error's code, undefined after success. */
function writeRefusal(folder: string): string | undefined {
  const path = join(folder, `.substrate-doctor-${process.pid}`);
  try {
    const file = openSync(path, "wx", 0o600);
    try {
      writeSync(file, "x");
      fsyncSync(file);
    } finally {
      closeSync(file);
      unlinkSync(path);
    }
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error);
  }
}

function room({ root, overlay }: Home): HostFinding {
  const places = [...new Set([nearestExisting(root), nearestExisting(overlay)])];
  const found = places.map((place) => ({ place, ...roomAt(place) }));
  const seen = found
    .map(({ place, bytes, files }) => `'${place}': ${mebibytes(bytes)} MiB, ${files} files`)
    .join("; ");
  const tight = found.filter(({ bytes, files }) => bytes < LEAST_ROOM || files < LEAST_FILES);
  if (tight.length === 0) return { verdict: "ok", seen, mend: [] };
  return { verdict: "weaker", seen, mend: tight.map(({ place }) => `df -h '${place}'; df -i '${place}'`) };
}

function roomAt(place: string): { readonly bytes: number; readonly files: number } {
  const { bavail, bsize, ffree, files } = statfsSync(place);
  // btrfs and others report 0 files in total: they have no fixed number.
  return { bytes: bavail * bsize, files: files === 0 ? Number.MAX_SAFE_INTEGER : ffree };
}

function mebibytes(bytes: number): number {
  return Math.floor(bytes / 1024 / 1024);
}

function sockets(home: Home): HostFinding {
  const agents = existsSync(home.agentSockets) ? readdirSync(home.agentSockets) : [];
  const paths = [
    home.agentSocket,
    home.controlSocket,
    home.sshAgentSocket,
    ...agents.map((name) => join(home.agentSockets, name)),
  ];
  const there = paths.filter((path) => existsSync(path));
  const open = there.filter((path) => (statSync(path).mode & 0o177) !== 0);
  if (open.length > 0)
    return {
      verdict: "weaker",
      seen: `other users can reach ${open.join(", ")}`,
      mend: open.map((path) => `chmod 600 '${path}'`),
    };
  return {
    verdict: "ok",
    seen: there.length === 0 ? "no sockets yet" : `${there.length} with mode 600`,
    mend: [],
  };
}

function nearestExisting(path: string): string {
  return existsSync(path) || path === "/" ? path : nearestExisting(dirname(path));
}
