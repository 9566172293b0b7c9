/** A broker, and a person's home with settings files, in which `substrate init` runs with a stand-in for the hook's program. */
import { lstatSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { hostGit } from "../git/git.ts";
import { HomeFolder } from "../users/folders.ts";
import type { Actor, Ended } from "../users/users.ts";
import { TestBroker } from "./broker.ts";
import { installationIn, type TestInstallation } from "./installation.ts";
import { standInFor } from "./stand-in-front.ts";

export class InitPlace {
  readonly broker: TestBroker;
  readonly installation: TestInstallation;
  readonly folder: HomeFolder;
  /** HOME of the person. */
  readonly home: string;
  /** The broker's config.yaml. */
  readonly config: string;

  private constructor(broker: TestBroker, installation: TestInstallation, folder: HomeFolder) {
    this.broker = broker;
    this.installation = installation;
    this.folder = folder;
    this.home = join(folder.path, "person");
    this.config = join(broker.home, "config.yaml");
  }

  static async start(actor: Actor): Promise<InitPlace> {
    const folder = new HomeFolder(actor);
    const installation = installationIn(folder.path, actor);
    standInFor(installation.root);
    const broker = await TestBroker.start(actor, { installation });
    hostGit(actor, broker.project, "init", "-q");
    return new InitPlace(broker, installation, folder);
  }

  async stop(): Promise<void> {
    await this.broker.stop();
    this.folder.remove();
  }

  /** Begins with an empty home, and without a config.yaml. */
  open(): void {
    rmSync(this.config, { force: true });
    mkdirSync(this.home);
    this.folder.own();
  }

  /** Removes the home and everything that `init` wrote. */
  close(): void {
    for (const path of [this.home, join(this.broker.home, "connections"), this.config])
      rmSync(path, { recursive: true, force: true });
  }

  init(words: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> {
    return this.broker.cli(["init", ...words], { env: { HOME: this.home, ...env } });
  }

  put(name: string, text: string): string {
    return this.folder.write(join("person", name), text);
  }

  read(name: string): string {
    return readFileSync(join(this.home, name), "utf8");
  }

  /** All files and links below the home, with mode, owner and content. */
  snapshot(): Readonly<Record<string, string>> {
    const names = readdirSync(this.home, { recursive: true, encoding: "utf8" }).sort();
    return Object.fromEntries(
      names.map((name) => {
        const path = join(this.home, name);
        const stat = lstatSync(path);
        const content = stat.isFile() ? readFileSync(path, "latin1") : "";
        return [name, `${stat.mode.toString(8)} ${stat.uid} ${content}`];
      }),
    );
  }
}

/** Cursor's command is one word for a shell. */
export function hookOf(agent: string): RegExp {
  return new RegExp(`\\.build/substrate'(\\\\\\\\'')? hook ${agent} \\|\\| exit 2`);
}

/** Lines of `text` that `edited` no longer has in this order; a comma at the end of a value may have come. */
export function linesLeft(text: string, edited: string): readonly string[] {
  const plain = (line: string): string => line.trimEnd().replaceAll(/,(?=\s*(\/\/.*)?$)/g, "");
  let rest = edited.split("\n").map(plain);
  return text.split("\n").filter((line) => {
    const inline = rest.findIndex(
      (each) => each === plain(line) || each.startsWith(plain(line).slice(0, -2)),
    );
    rest = rest.slice(Math.max(inline + 1, 0));
    return inline < 0;
  });
}
