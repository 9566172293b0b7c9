/** Expands the presets of `net.allowed` on this host, with a cache invalidated by changed settings files. */
import { BoundedMap } from "../../model/bounded-map.ts";
import { existsSync, realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileIdentity } from "../../model/host-paths.ts";
import { type PolicyNet, type PresetName, presetsIn } from "../names/entries.ts";
import { type GitProjects, gitConfigOf, remotesOf } from "./git.ts";
import { HostTools } from "./host-tools.ts";
import { eachOnce, type Expansion, expansionOf, type PresetHost, standsForNothing } from "./preset.ts";
import { TOOL_PRESETS } from "./tool-presets.ts";
import { askYarn, YarnProjects, yarnSettings } from "./yarn.ts";

/** Five minutes; then settings outside the watched files take effect. */
const MAX_AGE_MS = 300_000;

/** All presets, and some hundred projects. */
const MAX_KNOWN = 512;

type Known = {
  /** State of the settings files when the tool was asked. */
  readonly stamp: string;
  readonly answer: Promise<Expansion>;
  /** Time of the last question to the tool. */
  askedAt: number;
};

/** A cached question: a preset, or the yarn part of `@npm` for projects with yarn. */
type Asked = PresetName | "@npm of yarn";

export class Presets {
  readonly #host: PresetHost;
  readonly #projects: GitProjects;
  readonly #now: () => number;
  readonly #known = new BoundedMap<string, Known>(MAX_KNOWN);
  readonly #yarn = new YarnProjects();
  readonly #joint = new WeakMap<Expansion, { readonly yarn: Expansion; readonly joint: Expansion }>();

  /** `now`: milliseconds. */
  constructor(host: PresetHost, projects: GitProjects, now: () => number = Date.now) {
    this.#host = host;
    this.#projects = projects;
    this.#now = now;
  }

  get host(): PresetHost {
    return this.#host;
  }

  /**
   * Returns the hosts and ports of a preset, with notes about omissions. Never rejects. The first call, and a call
   * after changed settings, waits for the tool; an answer past its age is returned while a newer one is fetched.
   *
   * @param project real path; matters for `@git`, and for `@npm` in projects with yarn.
   */
  async expand(name: PresetName, project: string): Promise<Expansion> {
    if (name !== "@npm" || !this.#yarn.uses(project)) return await this.#expand(name, project);
    const [npm, yarn] = await Promise.all([
      this.#expand(name, project),
      this.#expand("@npm of yarn", project),
    ]);
    return this.#together(npm, yarn);
  }

  /** Returns the same object while neither answer changes: rules built from an expansion are cached by identity. */
  #together(npm: Expansion, yarn: Expansion): Expansion {
    const before = this.#joint.get(npm);
    if (before?.yarn === yarn) return before.joint;
    const joint = {
      ...npm,
      entries: eachOnce([...npm.entries, ...yarn.entries]),
      notes: [...npm.notes, ...yarn.notes],
    };
    this.#joint.set(npm, { yarn, joint });
    return joint;
  }

  async #expand(name: Asked, project: string): Promise<Expansion> {
    const key = name === "@git" ? `@git ${project}` : name;
    const stamp = this.#stamp(name, project);
    const known = this.#known.get(key);
    if (known?.stamp !== stamp) return await this.#askAnew(key, stamp, name, project);
    if (this.#now() - known.askedAt > MAX_AGE_MS) {
      known.askedAt = this.#now();
      void this.#refresh(key, known, name, project);
    }
    return await known.answer;
  }

  /** Expands all presets of a policy concurrently, as input for `netRules`. */
  async expandAll(net: PolicyNet, project: string): Promise<ReadonlyMap<PresetName, Expansion>> {
    const names = presetsIn(net);
    const each = names.map(async (name) => [name, await this.expand(name, project)] as const);
    return new Map(await Promise.all(each));
  }

  #askAnew(key: string, stamp: string, name: Asked, project: string): Promise<Expansion> {
    const answer = this.#ask(name, project);
    this.#known.set(key, { stamp, answer, askedAt: this.#now() });
    return answer;
  }

  /** Fetches a newer answer; drops the answer if the settings changed meanwhile. */
  async #refresh(key: string, before: Known, name: Asked, project: string): Promise<void> {
    const answer = await this.#ask(name, project);
    if (this.#known.get(key) === before)
      this.#known.set(key, { ...before, answer: Promise.resolve(answer), askedAt: this.#now() });
  }

  async #ask(name: Asked, project: string): Promise<Expansion> {
    try {
      const tools = new HostTools(this.#host);
      const open = this.#operatorFiles(name).find((path) => this.#isOpen(path));
      if (open !== undefined)
        return standsForNothing(name, `ignored '${open}': commands in worlds may write it`);
      if (name === "@git") return await remotesOf(project, this.#projects, tools);
      const asked = await (name === "@npm of yarn" ? askYarn(tools) : TOOL_PRESETS[name].ask(tools));
      return typeof asked === "string" ? standsForNothing(name, asked) : expansionOf(name, asked);
    } catch (error) {
      return standsForNothing(name, error instanceof Error ? error.message : String(error));
    }
  }

  /**
   * Stamps the settings files. An error (a link to itself, perhaps made by a command) becomes the stamp, and the tool
   * is still asked.
   */
  #stamp(name: Asked, project: string): string {
    try {
      return this.#settings(name, project).map(identityOf).join("\n");
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  #settings(name: Asked, project: string): readonly string[] {
    const files = this.#operatorFiles(name);
    const config = name === "@git" ? gitConfigOf(project, this.#projects).file : undefined;
    return config === undefined ? files : [config, ...this.#projects.remotes.recordsOf(config), ...files];
  }

  #operatorFiles(name: Asked): readonly string[] {
    const { home } = this.#host;
    if (name === "@git") return [join(home, ".gitconfig"), join(home, ".config/git/config")];
    if (name === "@npm of yarn") return yarnSettings(this.#host);
    return TOOL_PRESETS[name].settings(this.#host);
  }

  /** Checks the path and its real path: many users keep settings in a repository, linked from the home folder. */
  #isOpen(path: string): boolean {
    const { mayBeWritten } = this.#host;
    return mayBeWritten(path) || (existsSync(path) && mayBeWritten(realpathSync.native(path)));
  }
}

function identityOf(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false, bigint: true });
  return stat === undefined ? `${path} missing` : `${path} ${fileIdentity(stat)}`;
}
