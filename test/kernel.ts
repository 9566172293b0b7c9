import { release } from "node:os";

/** Whether the kernel here is this version of Linux or a later one. */
export function linuxSince(major: number, minor: number): boolean {
  const [ownMajor = 0, ownMinor = 0] = release().split(".").map(Number);
  return ownMajor > major || (ownMajor === major && ownMinor >= minor);
}
