import { constants } from "node:os";

const NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(constants.errno).map(([name, number]) => [number, name] as const),
);

/** Names a kernel error number (`ENOENT` for 2); an unknown number becomes `errno` and the number. */
export function errnoName(errno: number): string {
  return NAMES.get(errno) ?? `errno ${errno}`;
}
