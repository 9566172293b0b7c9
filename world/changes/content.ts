/** What changed files hold now, as digests: here, or beside the broker when they are many. */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { closeSync, constants, fstatSync, openSync, readlinkSync, readSync } from "node:fs";
import { bytesOf, rawPath } from "../overlay/names.ts";
import { contentDigest } from "../overlay/tree-hash.ts";
import type { DirectChange } from "./compare.ts";

const PART = 64 * 1024;

type Where = { readonly project: string; readonly init: string };

/**
 * For each change the digest of a file's bytes or of a link's target, "" of all else; undefined when it cannot be read, or is
 * not any more what was compared: never through a link, and never waiting for a pipe that took its place.
 */
type Digests = readonly (string | undefined)[];

export function digestsHere({ project }: Where, changes: readonly DirectChange[]): Digests {
  const part = Buffer.allocUnsafe(PART);
  const root = bytesOf(project);
  return changes.map(({ path, now }) => {
    try {
      return digest(rawPath(`${root}/${path}`), now, part);
    } catch {
      return undefined;
    }
  });
}

function digest(path: Buffer, now: DirectChange["now"], part: Buffer): string | undefined {
  if (now?.isSymbolicLink() === true) return contentDigest(readlinkSync(path, { encoding: "buffer" }));
  if (now?.isFile() !== true) return "";
  const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const { ino, dev } = fstatSync(fd);
    const same = ino === Number(now.ino) && dev === Number(now.dev);
    return same ? digestOf(fd, Number(now.size), part) : undefined;
  } finally {
    closeSync(fd);
  }
}

/** At most the size that was compared: a file that grows meanwhile has no end. */
function digestOf(fd: number, size: number, part: Buffer): string {
  const hash = createHash("sha256");
  for (let at = 0; at < size; ) {
    const count = readSync(fd, part, 0, Math.min(size - at, PART), at);
    if (count === 0) break;
    hash.update(part.subarray(0, count));
    at += count;
  }
  return hash.digest("hex");
}

/** `substrate-init digests`: many files would hold the broker up, and a small program reads them in less time. */
export async function digestsBeside(
  { project, init }: Where,
  changes: readonly DirectChange[],
  signal: AbortSignal,
): Promise<Digests> {
  const asked = changes.filter(({ now }) => now?.isFile() === true || now?.isSymbolicLink() === true);
  const child = spawn(init, ["digests", project], {
    stdio: ["pipe", "pipe", "ignore"],
    env: {},
    cwd: "/",
    detached: true,
    signal,
  });
  const pieces: string[] = [];
  child.stdout.setEncoding("latin1").on("data", (piece: string) => pieces.push(piece));
  child.stdin.on("error", () => {
    // It has ended, which "close" tells, ignoring.
  });
  const ended = new Promise<void>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      if (code === 0) resolve();
      else reject(new Error(`'${init} digests' ended with ${code}`));
    });
  });
  child.stdin.end(Buffer.from(asked.map(({ path }) => `${path}\0`).join(""), "latin1"));
  await ended;
  const lines = pieces.join("").split("\n");
  let at = 0;
  return changes.map(({ now }) => {
    if (now?.isFile() !== true && now?.isSymbolicLink() !== true) return "";
    const line = lines[at];
    at += 1;
    return line === undefined || line === "?" || line === "-" ? undefined : line;
  });
}
