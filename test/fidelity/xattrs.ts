/** Extended attributes, which Node does not read: a C program of the suite's does. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** For each path: `name=hexadecimal value`, sorted. */
export type XattrsOf = (places: readonly Buffer[]) => readonly (readonly string[])[];

const SOURCE = fileURLToPath(new URL("xattrs.c", import.meta.url));
const LIST_BYTES = 256 << 20;

/** Compiles the reader into a folder. */
export function xattrReader(folder: string): XattrsOf {
  const program = join(folder, "xattrs");
  const built = spawnSync("cc", ["-O1", "-Wall", "-Wextra", "-Werror", "-o", program, SOURCE], {
    encoding: "utf8",
  });
  if (built.status !== 0) throw new Error(`Cannot compile '${SOURCE}': ${built.stderr}`);
  return (places) => read(program, places);
}

function read(program: string, places: readonly Buffer[]): readonly (readonly string[])[] {
  const end = Buffer.alloc(1);
  const ended = spawnSync(program, [], {
    input: Buffer.concat(places.flatMap((place) => [place, end])),
    maxBuffer: LIST_BYTES,
  });
  if (ended.status !== 0) throw new Error(`'${program}' failed: ${ended.stderr.toString()}`);
  const rows = ended.stdout.toString("latin1").split("\n");
  return places.map((_place, index) => (rows[index] ?? "").split("\t").filter(Boolean).sort());
}
