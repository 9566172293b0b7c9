// Runs inside an overlay's mount: does what it is told, and tells how the tree looks then. Paths have one letter a byte.
import { createHash } from "node:crypto";
import * as fs from "node:fs";

type Deed = {
  readonly deed: string;
  readonly path: string;
  readonly text?: string;
  readonly mode?: number;
  readonly time?: number;
  readonly from?: string;
};

const [root, ...rest] = process.argv.slice(2);
const raw = (path: string): Buffer => Buffer.concat([Buffer.from(`${root}/`), Buffer.from(path, "latin1")]);

const DEEDS: Readonly<Record<string, (deed: Deed) => void>> = {
  file: ({ path, text = "", mode = 0o644, time }) => {
    fs.writeFileSync(raw(path), Buffer.from(text, "latin1"));
    fs.chmodSync(raw(path), mode);
    if (time !== undefined) fs.utimesSync(raw(path), time, time);
  },
  append: ({ path, text = "" }) => fs.appendFileSync(raw(path), text),
  open: ({ path }) => fs.closeSync(fs.openSync(raw(path), "a")),
  dir: ({ path, mode = 0o755 }) => {
    fs.mkdirSync(raw(path));
    fs.chmodSync(raw(path), mode);
  },
  link: ({ path, text = "" }) => fs.symlinkSync(text, raw(path)),
  hard: ({ path, from = "" }) => fs.linkSync(raw(from), raw(path)),
  chmod: ({ path, mode = 0 }) => {
    const stat = fs.lstatSync(raw(path));
    // A folder that its owner cannot look into could not be compared.
    if (!stat.isSymbolicLink()) fs.chmodSync(raw(path), stat.isDirectory() ? mode | 0o100 : mode);
  },
  touch: ({ path, time = 0 }) => fs.lutimesSync(raw(path), time, time),
  remove: ({ path }) => fs.rmSync(raw(path), { recursive: true }),
  rename: ({ path, from = "" }) => fs.renameSync(raw(from), raw(path)),
};

/** Deeds that the tree as it is does not allow are left out: which ones is the same for everybody. */
function act(deeds: readonly Deed[]): void {
  for (const deed of deeds) {
    try {
      DEEDS[deed.deed]?.(deed);
    } catch (error) {
      if (!(error instanceof Error && "code" in error)) throw error;
    }
  }
}

function look(path: string, found: Record<string, unknown>, names: Record<string, string[]>): void {
  const stat = fs.lstatSync(raw(path), { bigint: true });
  const seen: Record<string, unknown> = { mode: Number(stat.mode), mtime: String(stat.mtimeNs) };
  if (stat.isSymbolicLink()) seen["to"] = fs.readlinkSync(raw(path), { encoding: "latin1" });
  if (stat.isFile()) {
    seen["hash"] = createHash("sha256")
      .update(fs.readFileSync(raw(path)))
      .digest("hex");
    if (stat.nlink > 1n) (names[String(stat.ino)] ??= []).push(path);
  }
  // The project's own folder is the overlay's: its mode is none of the command's.
  if (path === "") seen["mode"] = 0o040000;
  found[path] = seen;
  if (!stat.isDirectory()) return;
  for (const name of fs.readdirSync(raw(path), { encoding: "latin1" }))
    look(path === "" ? name : `${path}/${name}`, found, names);
}

for (const file of rest) act(JSON.parse(fs.readFileSync(file, "utf8")) as Deed[]);
const found: Record<string, unknown> = {};
const names: Record<string, string[]> = {};
look("", found, names);
const groups = Object.values(names)
  .map((paths) => paths.toSorted().join("\0"))
  .toSorted();
process.stdout.write(
  JSON.stringify({
    tree: Object.fromEntries(Object.entries(found).toSorted(([a], [b]) => (a < b ? -1 : 1))),
    groups,
  }),
);
