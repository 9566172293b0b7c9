/** Where rows are run: a home with a broker, and for each row a project that is filled anew before every run. */
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Actor, type Ended, runAs } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { removeTrees } from "../support/users/folders.ts";
import { copyPackages } from "./packages.ts";
import { newestIn, type Tree, treeOf } from "./tree.ts";
import { STRICTNESS, type Workload } from "./workload.ts";
import { type XattrsOf, xattrReader } from "./xattrs.ts";

/** As a person has it who uses git. */
const GIT_SETTINGS = `[user]
\tname = A Person
\temail = person@example.org
[init]
\tdefaultBranch = main
`;

/** Each policy has an agent of its name; what no agent is named for has `default`. Projects may lie anywhere. */
const CONFIG = `projects: ["/"]\nagents:\n${["enforced", "isolated", ...STRICTNESS].map((name) => `  ${name}: { policy: ${name} }\n`).join("")}`;

/** What a place has beside a home and a broker. */
export type Around = {
  /** Words before those of the broker and of bare runs: `TestInternet.enter`. */
  readonly within: readonly string[];
  /** The user's own settings, by path in the home folder. */
  readonly settings: Readonly<Record<string, string>>;
  /** Variables of the user's shell, by the path of the home folder. */
  readonly variables: (home: string) => Readonly<Record<string, string>>;
  /** Entries that the operator has added to `net.allowed` of every policy. */
  readonly moreNet: readonly string[];
};

const NOTHING: Around = { within: [], settings: {}, variables: () => ({}), moreNet: [] };

const CHECKOUT = fileURLToPath(new URL("../..", import.meta.url));

export class Place {
  readonly actor: Actor;
  readonly broker: TestBroker;
  /** A home of this place's own: what rows leave in it is removed, and nobody else's. */
  readonly #home: string;
  readonly #around: Around;
  readonly #environment: Readonly<Record<string, string>>;
  readonly #xattrsOf: XattrsOf;
  readonly #namesBefore: ReadonlySet<string>;

  private constructor(
    actor: Actor,
    broker: TestBroker,
    environment: Readonly<Record<string, string>>,
    around: Around,
  ) {
    this.actor = actor;
    this.#around = around;
    this.broker = broker;
    this.#home = broker.folder;
    this.#environment = environment;
    this.#xattrsOf = xattrReader(broker.folder);
    this.#namesBefore = new Set(readdirSync(broker.folder));
  }

  /** Below the actor's home, and not in `/tmp`, which every world has for itself. */
  static async start(actor: Actor, around: Around = NOTHING): Promise<Place> {
    const folder = mkdtempSync(join(actor.home, "fid-"));
    chmodSync(folder, 0o755);
    for (const name of ["rows", "prepared"]) mkdirSync(join(folder, name));
    writeFileSync(join(folder, ".gitconfig"), GIT_SETTINGS);
    // What a person's terminal says, inside and outside.
    const own = around.variables(folder);
    const environment = { HOME: folder, TERM: "xterm", SHELL: shellOf(actor), ...own };
    for (const [path, text] of Object.entries(around.settings)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text);
      give(actor, join(folder, firstOf(path)));
    }
    const broker = await TestBroker.start(actor, {
      ...{ folder, config: CONFIG, environment, within: around.within },
      policies: policiesWith(around.moreNet),
    });
    return new Place(actor, broker, environment, around);
  }

  stop(): Promise<void> {
    return this.broker.stop();
  }

  /** The project of a row, which lies in a folder of its own: what is written beside it is seen too. */
  projectOf(row: Workload): string {
    return join(this.#rowOf(row), "project");
  }

  environmentOf(row: Workload): Readonly<Record<string, string>> {
    return { ...this.#environment, ...row.env };
  }

  /** Why this machine cannot run a row. */
  async whyNot({ needs = [], tried }: Workload): Promise<string | undefined> {
    const look = 'for each; do command -v "$each" > /dev/null || printf "%s " "$each"; done';
    const missing = (await this.#run(["/bin/sh", "-c", look, "sh", ...needs], this.#home)).stdout.trim();
    if (missing !== "") return `${missing.split(" ").join(" and ")}: not installed`;
    if (tried === undefined) return undefined;
    const { code, stderr } = await this.#run(["/bin/sh", "-c", tried], this.#home);
    return code === 0 ? undefined : `'${tried}' fails here: ${stderr.trim().split("\n").at(-1) ?? ""}`;
  }

  /** Makes the project as the row wants it, and keeps a copy to fill it from. Throws what the script of the row printed. */
  async prepare(row: Workload): Promise<void> {
    await this.#fill(row, this.projectOf(row));
    copy(this.#rowOf(row), this.#preparedOf(row));
  }

  async #fill(row: Workload, project: string): Promise<void> {
    mkdirSync(project, { recursive: true });
    for (const [path, text] of Object.entries(row.files ?? {})) {
      mkdirSync(dirname(join(project, path)), { recursive: true });
      writeFileSync(join(project, path), text);
      if (text.startsWith("#!")) chmodSync(join(project, path), 0o755);
    }
    if (row.packages !== undefined) copyPackages(CHECKOUT, row.packages, project);
    give(this.actor, dirname(project));
    if (row.prepare !== undefined) {
      const { code, stdout, stderr } = await this.#run(["/bin/sh", "-ec", row.prepare], project);
      if (code !== 0) throw new Error(`The preparation ended with ${code}: ${stdout}${stderr}`);
    }
  }

  /** The project as it was prepared, with the same times. */
  async refill(row: Workload): Promise<void> {
    removeTrees(this.#rowOf(row));
    copy(this.#preparedOf(row), this.#rowOf(row));
    this.#tidyHome();
    const cwd = this.projectOf(row);
    // Git's index holds the inodes of the files: in a copy all of them look changed, which no person's checkout does.
    if (existsSync(join(cwd, ".git"))) await this.#run(["git", "update-index", "-q", "--refresh"], cwd);
    if (row.warm === true) await this.#warm(row);
  }

  /** Runs the row's command on the host, in another project, so that the caches of the home folder have what it needs. */
  async #warm(row: Workload): Promise<void> {
    const other = `${this.#rowOf(row)}-before`;
    // Prepared anew: the programs of a virtual environment name the folder that it was made in.
    await this.#fill(row, join(other, "project"));
    const { code, stdout, stderr } = await this.#run(["/bin/sh", "-c", row.command], join(other, "project"));
    removeTrees(other);
    if (code !== 0) throw new Error(`The command ended with ${code} on the host: ${stdout}${stderr}`);
  }

  /** The words that a bare run begins with. */
  get within(): readonly string[] {
    return this.#around.within;
  }

  /** What lies in the home folder, beside the rows: a line for each path. */
  homeLines(): readonly string[] {
    const own = new Set(["rows", "prepared", "home", "project"]);
    const folders = readdirSync(this.#home)
      .filter((name) => !own.has(name))
      .map((name) => [`~/${name}`, join(this.#home, name)] as const);
    const tree = treeOf(Object.fromEntries(folders), { since: 0n, xattrsOf: this.#xattrsOf });
    return [...tree].map(([path, line]) => `${path} ${line}`);
  }

  /** All that is there after a run. */
  look(row: Workload): Tree {
    const names = row.home ?? [];
    const home = Object.fromEntries(names.map((name) => [`~/${name}`, join(this.#home, name)]));
    const since = newestIn([this.#preparedOf(row)]);
    return treeOf({ ".": this.#rowOf(row), ...home }, { since, xattrsOf: this.#xattrsOf });
  }

  remove(row: Workload): void {
    removeTrees(this.#rowOf(row), this.#preparedOf(row));
    this.#tidyHome();
  }

  /** What a run left in the home would be there for the next one: caches, histories. The user's settings stay as they are. */
  #tidyHome(): void {
    const kept = new Set(Object.keys(this.#around.settings).map((path) => join(this.#home, path)));
    const tidy = (folder: string, names: readonly string[]): void => {
      for (const path of names.map((name) => join(folder, name)).filter((each) => !kept.has(each)))
        if ([...kept].some((each) => each.startsWith(`${path}/`))) tidy(path, readdirSync(path));
        else removeTrees(path);
    };
    const roots = new Set([...kept].map((path) => path.slice(this.#home.length + 1)).map(firstOf));
    const isLeft = (name: string): boolean => !this.#namesBefore.has(name) || roots.has(name);
    tidy(this.#home, readdirSync(this.#home).filter(isLeft));
    const settings = join(this.#home, ".gitconfig");
    writeFileSync(settings, GIT_SETTINGS);
    give(this.actor, settings);
  }

  #run(argv: readonly string[], cwd: string): Promise<Ended> {
    const { within } = this.#around;
    return runAs(this.actor, argv, { cwd, env: this.#environment, within });
  }

  #rowOf(row: Workload): string {
    return join(this.#home, "rows", shortName(row));
  }

  #preparedOf(row: Workload): string {
    return join(this.#home, "prepared", shortName(row));
  }
}

/** Short, since sockets lie in projects too and their paths are at most 107 bytes long (unix(7)). */
function shortName({ name }: Workload): string {
  const words = name.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  return words.slice(0, 24).replace(/^-|-$/g, "");
}

/** What operators have made of shipped policies (`PolicyName`); the others too where a name is added to `net.allowed`. */
function policiesWith(moreNet: readonly string[]): Readonly<Record<string, string>> {
  const net = moreNet.length === 0 ? "" : `net:\n  allowed: ${JSON.stringify(moreNet)}\n`;
  const from = (shipped: string, id: string, more = ""): string =>
    `id: ${id}\nname: ${id}\nextends: ${shipped}\n${net}${more}`;
  const changed = net === "" ? [] : ["default", ...STRICTNESS];
  return {
    enforced: from("default", "enforced", "mode: enforce\n"),
    isolated: from("strict", "isolated", 'commands:\n  isolated: ["*"]\n'),
    ...Object.fromEntries(changed.map((name) => [name, from(name, name)])),
  };
}

/** The first name of a path. */
function firstOf(path: string): string {
  return path.split("/", 1)[0] ?? path;
}

/** As the user database has it. */
function shellOf({ name }: Actor): string {
  const { stdout } = spawnSync("getent", ["passwd", name], { encoding: "utf8" });
  const shell = stdout.trim().split(":")[6] ?? "";
  return shell === "" ? "/bin/sh" : shell;
}

function copy(from: string, to: string): void {
  const { status, stderr } = spawnSync("cp", ["-a", "--", from, to], { encoding: "utf8" });
  if (status !== 0) throw new Error(`Cannot copy '${from}': ${stderr}`);
}

function give(actor: Actor, path: string): void {
  if (actor.uid === process.getuid?.()) return;
  const { status, stderr } = spawnSync("chown", ["-Rh", `${actor.uid}:${actor.gid}`, "--", path]);
  if (status !== 0) throw new Error(`Cannot give '${path}' away: ${stderr.toString()}`);
}
