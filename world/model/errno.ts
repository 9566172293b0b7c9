import { constants } from "node:os";

const NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(constants.errno).map(([name, number]) => [number, name] as const),
);

/** The name of a kernel error number (`ENOENT` for 2); the number itself when it has none here. */
export function errnoName(errno: number): string {
  return NAMES.get(errno) ?? `errno ${errno}`;
}
