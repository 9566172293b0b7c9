/** What the presets of `net.allowed` stand for on this host, kept while what they rest on stays the same. */
import { BoundedMap } from "../../model/bounded-map.ts";
import { existsSync, realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import { type PolicyNet, type PresetName, presetsIn } from "../names/entries.ts";
import { type GitProjects, gitConfigOf, remotesOf } from "./git.ts";
import { HostTools } from "./host-tools.ts";
import { eachOnce, type Expansion, expansionOf, type PresetHost, standsForNothing } from "./preset.ts";
import { TOOL_PRESETS } from "./tool-presets.ts";
import { askYarn, YarnProjects, yarnSettings } from "./yarn.ts";

/** Five minutes: what is set elsewhere than in the files that are watched shows itself after that. */
const MAX_AGE_MS = 300_000;

/** As many as there are presets, and some hundred projects. */
const MAX_KNOWN = 512;

type Known = {
  /** Of the settings' files when it was asked. */
  readonly stamp: string;
  readonly answer: Promise<Expansion>;
  /** When it was asked, or asked again. */
  askedAt: number;
};

/** What is asked for: a preset, or the part of `@npm` that only projects with yarn have. */
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
   * Hosts and ports that a preset stands for, with sentences about what it leaves out. Never rejects. Asks a tool the first
   * time and when its settings change, and is waited for then; an old answer is given while a newer one is fetched.
   *
   * @param project real path; counts for `@git`, and for `@npm`, which knows yarn's registries where the project uses yarn.
   */
  async expand(name: PresetName, project: string): Promise<Expansion> {
    if (name !== "@npm" || !this.#yarn.uses(project)) return await this.#expand(name, project);
    const [npm, yarn] = await Promise.all([
      this.#expand(name, project),
      this.#expand("@npm of yarn", project),
    ]);
    return this.#together(npm, yarn);
  }

  /** The same object while neither answer changes: by that, rules that were made of it are known to hold. */
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

  /** The same for every preset of a policy, at once: what `netRules` takes. */
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

  /** An answer about settings that changed in the meantime is nobody's. */
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
        return standsForNothing(name, `'${open}' does not count: commands in worlds may write it`);
      if (name === "@git") return await remotesOf(project, this.#projects, tools);
      const asked = await (name === "@npm of yarn" ? askYarn(tools) : TOOL_PRESETS[name].ask(tools));
      return typeof asked === "string" ? standsForNothing(name, asked) : expansionOf(name, asked);
    } catch (error) {
      return standsForNothing(name, error instanceof Error ? error.message : String(error));
    }
  }

  /** Of what cannot be looked at (a link to itself, which a command may have made) it is why: the tool is asked all the same. */
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
    return config === undefined ? files : [config, ...files];
  }

  #operatorFiles(name: Asked): readonly string[] {
    const { home } = this.#host;
    if (name === "@git") return [join(home, ".gitconfig"), join(home, ".config/git/config")];
    if (name === "@npm of yarn") return yarnSettings(this.#host);
    return TOOL_PRESETS[name].settings(this.#host);
  }

  /** By where it leads to as well: many keep their settings in a repository and links to them in the home folder. */
  #isOpen(path: string): boolean {
    const { mayBeWritten } = this.#host;
    return mayBeWritten(path) || (existsSync(path) && mayBeWritten(realpathSync.native(path)));
  }
}

/** Device, inode, size and both times: an edit in place, a rename and a copy over each change one of them. */
function identityOf(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false, bigint: true });
  return stat === undefined
    ? `${path} missing`
    : `${path} ${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeNs}:${stat.ctimeNs}`;
}
