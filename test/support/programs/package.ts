/** The package that `npm pack` makes, and installations of it by npm. */
import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Ended, runAs, type TestUser } from "../users/users.ts";

const CHECKOUT = fileURLToPath(new URL("../../..", import.meta.url)).replace(/\/$/, "");

/** Packs this checkout. Returns the path of the tarball, which other users may read. */
export function packed(folder: string): string {
  const words = ["pack", "--pack-destination", folder, "--silent", "--cache", join(folder, "cache")];
  execFileSync("npm", words, { cwd: CHECKOUT, stdio: ["ignore", "pipe", "inherit"] });
  const name = readdirSync(folder).find((each) => each.endsWith(".tgz"));
  if (name === undefined) throw new Error(`'npm pack' left no tarball in '${folder}'`);
  execFileSync("chmod", ["-R", "a+rX", folder]);
  return join(folder, name);
}

/** The same package as another version. */
export function asVersion(tarball: string, version: string): string {
  const folder = mkdtempSync(join(dirname(tarball), "again-"));
  execFileSync("tar", ["-xzf", tarball, "-C", folder]);
  const manifest = join(folder, "package/package.json");
  writeFileSync(
    manifest,
    JSON.stringify({ ...(JSON.parse(readFileSync(manifest, "utf8")) as object), version }),
  );
  const made = join(dirname(tarball), `substrate-${version}.tgz`);
  execFileSync("tar", ["-czf", made, "-C", folder, "package"]);
  rmSync(folder, { recursive: true });
  execFileSync("chmod", ["a+r", made]);
  return made;
}

export type PersonOptions = { readonly prefix?: string };

/** A person with a home and a project, who installs the package with `npm install --global`. */
export class Person {
  readonly user: TestUser;
  readonly folder: string;
  readonly home: string;
  readonly project: string;
  /** Where npm puts global packages. */
  readonly prefix: string;

  constructor(user: TestUser, { prefix }: PersonOptions = {}) {
    this.user = user;
    this.folder = mkdtempSync(join(user.uid === 0 ? tmpdir() : user.home, "sbp-"));
    this.home = join(this.folder, "home");
    this.project = join(this.home, "app");
    this.prefix = prefix ?? join(this.folder, "npm");
    for (const folder of [this.project, join(this.folder, "npm")]) mkdirSync(folder, { recursive: true });
    execFileSync("git", ["init", "--quiet", this.project]);
    this.own();
  }

  own(): void {
    const { uid, gid } = this.user;
    execFileSync("chown", ["-Rh", `${uid}:${gid}`, this.folder]);
  }

  /** Runs a program with this home, the global packages first on PATH. */
  run(
    argv: readonly string[],
    options: {
      readonly cwd?: string;
      readonly env?: Readonly<Record<string, string>>;
      readonly stdin?: string;
    } = {},
  ): Promise<Ended> {
    const path = [join(this.prefix, "bin"), dirname(process.execPath), "/usr/bin", "/bin"].join(":");
    return runAs(this.user, argv, {
      cwd: options.cwd ?? this.project,
      stdin: options.stdin ?? "",
      env: {
        HOME: this.home,
        PATH: path,
        npm_config_prefix: this.prefix,
        npm_config_cache: join(this.folder, "cache"),
        // The package has no dependencies, so npm needs no registry.
        npm_config_offline: "true",
        npm_config_update_notifier: "false",
        ...options.env,
      },
    });
  }

  async mustRun(argv: readonly string[], options?: Parameters<Person["run"]>[1]): Promise<Ended> {
    const ended = await this.run(argv, options);
    if (ended.code !== 0) throw new Error(`'${argv.join(" ")}' ended with ${ended.code}: ${ended.stderr}`);
    return ended;
  }

  async install(tarball: string): Promise<void> {
    await this.mustRun(["npm", "install", "--global", "--silent", tarball]);
  }

  get package(): string {
    return join(this.prefix, "lib/node_modules/substrate");
  }

  /** The running broker's own record; undefined without a broker. */
  broker(): { readonly pid: number; readonly version: string; readonly installation: string } | undefined {
    const path = join(this.home, ".substrate/run/broker.json");
    return existsSync(path)
      ? (JSON.parse(readFileSync(path, "utf8")) as { pid: number; version: string; installation: string })
      : undefined;
  }

  /** Ends the broker, whichever installation it is of, and removes everything. */
  async remove(): Promise<void> {
    const pid = this.broker()?.pid;
    if (pid !== undefined) {
      process.kill(pid, "SIGTERM");
      while (existsSync(`/proc/${pid}`) && this.broker()?.pid === pid)
        await new Promise((done) => setTimeout(done, 50));
    }
    const away = `${this.folder}-gone`;
    renameSync(this.folder, away);
    rmSync(away, { recursive: true, force: true });
  }
}
