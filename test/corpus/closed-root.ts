import { spawnSync } from "node:child_process";
import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export type Shell = "dash" | "bash";

/** What one shell ran of one command: the program as it was found, and its arguments. */
export type Executed = {
  readonly calls: readonly (readonly string[])[];
  /** Programs that were wanted and are nowhere. */
  readonly missing: readonly string[];
};

const SETUP = `
set -e
root=$1; shift
mount --make-rprivate /
for folder in lib lib64 libexec share; do
  [ -d "/usr/$folder" ] || continue
  mount --bind "/usr/$folder" "$root/usr/$folder"
  mount -o remount,bind,ro "$root/usr/$folder"
done
mount --bind /usr/bin "$root/real/bin"; mount -o remount,bind,ro "$root/real/bin"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
mount --bind /dev/null "$root/dev/null"
mount -t proc proc "$root/proc"
exec chroot "$root" /driver "$@"
`;

/** A root folder in which every program of the corpus is a recorder, so that any text may be run there. */
export class ClosedRoot {
  readonly #root: string;

  private constructor(root: string) {
    this.#root = root;
  }

  /** A sentence instead, where this machine cannot make one. `names`: what programs there are. */
  static make(names: Iterable<string>): ClosedRoot | string {
    const root = mkdtempSync(join(tmpdir(), "substrate-corpus-"));
    const closed = new ClosedRoot(root);
    const trouble = closed.#build(names) ?? closed.#try();
    if (trouble === null) return closed;
    closed.remove();
    return trouble;
  }

  /** Runs all texts in one shell, one after the other, each in a folder of its own. */
  run(shell: Shell, texts: readonly string[]): readonly Executed[] {
    this.#clear();
    for (const [index, text] of texts.entries()) writeFileSync(join(this.#root, "cases", `${index}`), text);
    const ended = this.#enter([shell, "0", `${texts.length - 1}`]);
    if (ended.status !== 0) throw new Error(`The closed root's driver failed: ${ended.stderr.toString()}`);
    return texts.map((_text, index) => this.#result(`${shell}-${index}`));
  }

  /**
   * Runs many texts in children of one shell, a millisecond each: programs that nobody can find are not told apart. A
   * process that outlives its text is told with a later one: who finds something wrong runs that text by itself ({@link run}).
   *
   * @returns the calls of each text; null for one that took longer than a second.
   */
  runMany(shell: Shell, texts: readonly string[]): readonly (Executed["calls"] | null)[] {
    this.#clear();
    for (const [index, text] of texts.entries()) writeFileSync(join(this.#root, "cases", `${index}`), text);
    const ended = this.#enter([shell, "0", `${texts.length - 1}`, "many"]);
    if (ended.status !== 0) throw new Error(`The closed root's driver failed: ${ended.stderr.toString()}`);
    return readMany(readFileSync(join(this.#root, "out", `${shell}-many.log`), "latin1"), texts.length);
  }

  remove(): void {
    rmSync(this.#root, { recursive: true, force: true });
  }

  #build(names: Iterable<string>): string | null {
    const root = this.#root;
    for (const folder of ["usr/bin", "usr/lib", "usr/lib64", "usr/libexec", "usr/share", "real/bin", "etc"])
      mkdirSync(join(root, folder), { recursive: true });
    for (const folder of ["dev/pts", "proc", "place", "out", "cases", "tmp", "home/ann"])
      mkdirSync(join(root, folder), { recursive: true });
    for (const name of ["bin", "sbin"]) symlinkSync("usr/bin", join(root, name));
    for (const name of ["lib", "lib64"]) symlinkSync(`usr/${name}`, join(root, name));
    symlinkSync("pts/ptmx", join(root, "dev/ptmx"));
    symlinkSync("/proc/self/fd", join(root, "dev/fd"));
    symlinkSync("/proc/self/fd/0", join(root, "dev/stdin"));
    writeFileSync(join(root, "dev/null"), "");
    writeFileSync(join(root, "etc/passwd"), "root:x:0:0::/home/ann:/bin/sh\n");
    const source = (name: string): string => join(import.meta.dirname, name);
    for (const words of [
      ["-static", "-o", join(root, "driver"), source("recorder.c")],
      ["-shared", "-fPIC", "-o", join(root, "preload.so"), source("preload.c")],
    ]) {
      const made = spawnSync("cc", ["-O1", ...words]);
      if (made.status !== 0) return `the recorder does not compile: ${String(made.stderr)}`;
    }
    for (const name of names) linkSync(join(root, "driver"), join(root, "usr/bin", name));
    return null;
  }

  #try(): string | null {
    this.#clear();
    writeFileSync(join(this.#root, "cases/0"), "ls; /usr/bin/rm x");
    for (const shell of ["dash", "bash"] as const) {
      if (!existsSync(join("/usr/bin", shell))) return `${shell} is not installed`;
      const ended = this.#enter([shell, "0", "0"]);
      const log = join(this.#root, "out", `${shell}-0.log`);
      if (ended.status !== 0 || !existsSync(log))
        return `no closed root here: ${String(ended.stderr).trim()}`;
      if (this.#result(`${shell}-0`).calls.length !== 2) return "the recorder does not record";
    }
    return null;
  }

  /** The folders of an earlier run: their names are needed again. */
  #clear(): void {
    for (const name of readdirSync(join(this.#root, "place")))
      rmSync(join(this.#root, "place", name), { recursive: true, force: true });
  }

  #enter(words: readonly string[]) {
    const user = process.getuid?.() === 0 ? [] : ["--user", "--map-root-user"];
    const own = [...user, "--mount", "--pid", "--net", "--ipc", "--fork", "--kill-child"];
    return spawnSync("unshare", [...own, "sh", "-c", SETUP, "setup", this.#root, ...words], {
      stdio: ["ignore", "ignore", "pipe"],
    });
  }

  #result(name: string): Executed {
    const log = readFileSync(join(this.#root, "out", `${name}.log`), "utf8");
    const errors = readFileSync(join(this.#root, "out", `${name}.err`), "utf8");
    return { calls: readLog(log), missing: missingIn(errors) };
  }
}

function readLog(log: string): string[][] {
  const fields = log.split("\0").slice(0, -1);
  const calls: string[][] = [];
  for (let at = 0; at < fields.length; ) {
    const count = Number(fields[at]);
    calls.push(fields.slice(at + 1, at + 1 + count));
    at += 1 + count;
  }
  return calls;
}

/** The calls up to each mark: `0` behind a text that ended, `-1` behind one that was ended. */
function readMany(log: string, count: number): (Executed["calls"] | null)[] {
  const fields = log.split("\0");
  const results: (Executed["calls"] | null)[] = [];
  let calls: string[][] = [];
  for (let at = 0; at < fields.length - 1; ) {
    const length = Number(fields[at]);
    if (length <= 0) {
      results[Number(fields[at + 1])] = length === 0 ? calls : null;
      calls = [];
      at += 2;
    } else {
      calls.push(fields.slice(at + 1, at + 1 + length));
      at += 1 + length;
    }
  }
  return Array.from({ length: count }, (_, index) => results[index] ?? null);
}

function missingIn(errors: string): string[] {
  const found = [...errors.matchAll(/: (?:line )?\d+: (.+?): (?:command )?not found$/gm)];
  return found.map((match) => (match[1] ?? "").replace(/^\$'(.*)'$/, "$1").replaceAll("\\r", "\r"));
}
