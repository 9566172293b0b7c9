/** Real folders with real overlays over them, and a user's process that applies what they hold. */
import type { ChildProcess } from "node:child_process";
import { chownSync, mkdirSync, mkdtempSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import type { ApplyEnding, HeldChange, Settled } from "../../../world/model/held.ts";
import { type Actor, runAs, spawnAs } from "../users/users.ts";
import { installationFor } from "../broker/installation.ts";
import { removeTrees } from "../users/folders.ts";
import { RenameKiller } from "./kill-at.ts";

export type Deed = { readonly deed: string; readonly path: string } & Readonly<Record<string, unknown>>;

/** How a tree looks: type, mode, times, content and links of everything, and which names are one file. */
export type Picture = {
  readonly tree: Readonly<Record<string, { readonly mode: number; readonly mtime: string | null }>>;
  readonly groups: readonly string[];
};

export type Span = {
  readonly layers: string;
  readonly project: string;
  readonly identity: string;
  readonly mountedAt: string;
};

const HERE = fileURLToPath(new URL(".", import.meta.url));
const MOUNT = `
mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work,index=off,metacopy=off,redirect_dir=nofollow$3" "$2/seen-at"
shift 3
exec "$@"
`;

type Result = { readonly threw?: string };

export class HeldPlace implements AsyncDisposable {
  readonly folder: string;
  readonly init: string;
  /** Kills what applies or takes back at a chosen rename. */
  readonly killer: RenameKiller;
  readonly #actor: Actor;
  readonly #node: string;
  readonly #calls = new Map<number, (result: unknown) => void>();
  #driver: ChildProcess;
  #count = 0;

  private constructor(actor: Actor, folder: string, node: string, init: string, closed: boolean) {
    this.#actor = actor;
    this.folder = folder;
    this.#node = node;
    this.init = init;
    this.killer = new RenameKiller(folder, init, closed);
    this.#driver = this.#start();
  }

  /** `parent` is where the folder is made: another file system, say. `closed`: no user namespace for what applies. */
  static async open(actor: Actor, parent = tmpdir(), closed = false): Promise<HeldPlace> {
    const folder = mkdtempSync(join(parent, "sb-held-"));
    const { node, root } = await installationFor(actor);
    await build({
      entryPoints: ["driver.ts", "mutate.ts"].map((name) => join(HERE, name)),
      outdir: folder,
      outExtension: { ".js": ".mjs" },
      bundle: true,
      platform: "node",
      format: "esm",
      target: "node20",
      logLevel: "error",
    });
    for (const name of ["projects", "overlay"]) {
      mkdirSync(join(folder, name));
      chownSync(join(folder, name), actor.uid, actor.gid);
    }
    return new HeldPlace(actor, folder, node, join(root, ".build/substrate-init"), closed);
  }

  /** A project with what `deeds` make in it, and empty layers. */
  async project(name: string, deeds: readonly Deed[]): Promise<Span> {
    const project = join(this.folder, "projects", name);
    const layers = join(this.folder, "overlay", `spn_${name}`);
    for (const path of [project, layers, ...["upper", "work", "seen-at"].map((part) => join(layers, part))]) {
      mkdirSync(path, { recursive: true });
      chownSync(path, this.#actor.uid, this.#actor.gid);
    }
    await this.look(project, deeds);
    // Later than anything in it, as far as a file system's clock can tell (a tick of the kernel's).
    await new Promise((resolve) => setTimeout(resolve, 12));
    const { dev, ino } = statSync(project);
    return { project, layers, identity: `${dev}:${ino}`, mountedAt: String(BigInt(Date.now()) * 1_000_000n) };
  }

  /** Does the deeds in the tree at `path`, and tells how it looks then. */
  async look(path: string, deeds: readonly Deed[] = []): Promise<Picture> {
    return await this.#picture([...this.#mutate(path, deeds)]);
  }

  /** Does the deeds on an overlay over the project, as a command would, and tells what it saw at its end. */
  async isolated({ project, layers }: Span, deeds: readonly Deed[]): Promise<Picture> {
    const root = this.#actor.uid === 0;
    const own = root ? ["unshare", "-m"] : ["unshare", "-U", "-r", "-m"];
    const command = this.#mutate(join(layers, "seen-at"), deeds);
    const option = root ? "" : ",userxattr";
    return await this.#picture([...own, "sh", "-c", MOUNT, "sh", project, layers, option, ...command]);
  }

  /** Runs a shell script as the user; `$1` and so on are the words. */
  async sh(script: string, ...words: string[]): Promise<string> {
    const ended = await runAs(this.#actor, ["sh", "-ec", script, "sh", ...words], { cwd: this.folder });
    if (ended.code !== 0) throw new Error(`'${script}' ended with ${ended.code}: ${ended.stderr}`);
    return ended.stdout;
  }

  async list(held: Span): Promise<readonly HeldChange[]> {
    return await this.#call({ verb: "list", held });
  }

  async apply(
    held: Span,
    paths: readonly string[] | null = null,
    denied: readonly string[] = [],
  ): Promise<ApplyEnding> {
    return await this.#call({ verb: "apply", held, paths, denied });
  }

  async undo(held: Span, paths: readonly string[] | null = null): Promise<ApplyEnding> {
    return await this.#call({ verb: "undo", held, paths });
  }

  async discard(held: Span, paths: readonly string[] | null = null): Promise<ApplyEnding> {
    return await this.#call({ verb: "discard", held, paths });
  }

  async content(
    held: Span,
    path: string,
    limit: number,
  ): Promise<{ before: string | null; after: string | null }> {
    return await this.#call({ verb: "content", held, paths: [path], limit });
  }

  async recover(): Promise<readonly Settled[]> {
    return await this.#call({ verb: "recover", root: join(this.folder, "overlay") });
  }

  /** As when everything that is held is old; gives how many were removed. */
  async expire(): Promise<number> {
    return await this.#call({ verb: "expire", root: join(this.folder, "overlay") });
  }

  /** Kills whatever applies or takes back at this moment, if anything does. */
  killApplier(): boolean {
    const readers = this.readers();
    for (const reader of readers) process.kill(reader, "SIGKILL");
    return readers.length > 0;
  }

  /** The processes that read, apply or take back at this moment. */
  readers(): readonly number[] {
    const pid = this.#driver.pid ?? 0;
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
    return children === "" ? [] : children.split(" ").map(Number);
  }

  /** Kills the process that asks the readers, as a broker is killed. */
  async killDriver(): Promise<void> {
    const driver = this.#driver;
    const closed = new Promise((resolve) => driver.once("close", resolve));
    driver.kill("SIGKILL");
    await closed;
  }

  /** A new process that applies, where the last one was killed. */
  restart(): void {
    this.#driver = this.#start();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const driver = this.#driver;
    // One that a test killed says nothing more.
    const isOver = driver.exitCode !== null || driver.signalCode !== null;
    const closed = isOver ? undefined : new Promise((resolve) => driver.once("close", resolve));
    driver.stdin?.end();
    await closed;
    removeTrees(this.folder);
  }

  #start(): ChildProcess {
    const words = [this.#node, join(this.folder, "driver.mjs"), this.killer.program];
    const driver = spawnAs(this.#actor, words, { cwd: "/", stdio: ["pipe", "pipe", "inherit"] });
    if (driver.stdout === null) throw new Error("The driver has no output");
    createInterface({ input: driver.stdout }).on("line", (line) => {
      const { id, result } = JSON.parse(line) as { id: number; result: unknown };
      this.#calls.get(id)?.(result);
      this.#calls.delete(id);
    });
    driver.once("close", () => {
      for (const answer of this.#calls.values()) answer({ threw: "The driver has ended" });
      this.#calls.clear();
    });
    return driver;
  }

  async #call<T>(call: Readonly<Record<string, unknown>>): Promise<T> {
    const id = ++this.#count;
    const result = new Promise<unknown>((resolve) => this.#calls.set(id, resolve));
    this.#driver.stdin?.write(`${JSON.stringify({ ...call, id })}\n`);
    const answer = (await result) as T & Result;
    if (answer.threw !== undefined) throw new Error(answer.threw);
    return answer;
  }

  #mutate(path: string, deeds: readonly Deed[]): readonly string[] {
    const file = join(this.folder, `deeds-${++this.#count}.json`);
    writeFileSync(file, JSON.stringify(deeds));
    return [this.#node, join(this.folder, "mutate.mjs"), path, file];
  }

  async #picture(words: readonly string[]): Promise<Picture> {
    const ended = await runAs(this.#actor, words, { cwd: "/" });
    if (ended.code !== 0) throw new Error(`The tree cannot be looked at: ${ended.stderr}`);
    return JSON.parse(ended.stdout) as Picture;
  }
}
