/** A host of one folder: a home, and a folder of programs that say what a test has them say. */
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { PresetName } from "../../../broker/network/names/entries.ts";
import { Remotes } from "../../../broker/git/remotes.ts";
import type { GitProjects } from "../../../broker/network/presets/git.ts";
import type { PresetHost } from "../../../broker/network/presets/preset.ts";
import { Presets } from "../../../broker/network/presets/presets.ts";
import type { KnownProjects } from "../../../broker/network/presets/writable.ts";
import type { ProjectRules } from "../../../broker/project/projects.ts";

export class FakeHost {
  readonly root = realpathSync.native(mkdtempSync(join(tmpdir(), "substrate-host-")));
  readonly home = join(this.root, "home");
  readonly bin = join(this.root, "bin");
  readonly project = join(this.root, "home/project");
  now = 0;

  constructor() {
    for (const folder of [this.bin, this.project]) mkdirSync(folder, { recursive: true });
  }

  get rules(): ProjectRules {
    return { home: this.home, hidden: [], uid: process.getuid?.() ?? 0, installation: "/nowhere", roots: [] };
  }

  get projects(): KnownProjects {
    return { rules: () => this.rules, wasProject: () => false };
  }

  /** A program of `sh`; each run leaves a line with its words in `ran`. */
  program(name: string, body: string, folder = this.bin): string {
    const path = join(folder, name);
    this.write(path, `#!/bin/sh\necho "${name} $*" >> ${this.root}/ran\n${body}\n`);
    chmodSync(path, 0o755);
    return path;
  }

  write(path: string, content: string): string {
    const full = path.startsWith("/") ? path : join(this.root, path);
    mkdirSync(dirname(full), { recursive: true });
    writeFileSync(full, content);
    return full;
  }

  link(target: string, path: string): void {
    rmSync(path, { force: true });
    symlinkSync(target, path);
  }

  ran(): readonly string[] {
    try {
      return readFileSync(join(this.root, "ran"), "utf8").trim().split("\n");
    } catch {
      // Nothing ran.
      return [];
    }
  }

  presetHost(over: Partial<PresetHost> = {}): PresetHost {
    return { environment: { PATH: this.bin }, home: this.home, mayBeWritten: () => false, ...over };
  }

  presets(over: Partial<PresetHost> = {}, projects: Partial<GitProjects> = {}): Presets {
    const git = {
      ...this.projects,
      linkedFolder: () => undefined,
      mayWrite: () => false,
      remotes: new Remotes(join(this.root, "remotes"), process.getuid?.() ?? 0, () => {}),
      ...projects,
    };
    return new Presets(this.presetHost(over), git, () => this.now);
  }

  /** `host:port` of what a preset stands for. */
  async entriesOf(name: PresetName, presets: Presets, project = this.project): Promise<readonly string[]> {
    const { entries } = await presets.expand(name, project);
    return entries.map(({ host, port }) => `${host}:${port}`);
  }

  async notesOf(name: PresetName, presets: Presets, project = this.project): Promise<string> {
    return (await presets.expand(name, project)).notes.join("\n");
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}
