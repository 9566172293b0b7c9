/** `@git`: the remotes of a project. Its `.git/config` is read, never git run: what stands there can name programs. */
import { lstatSync } from "node:fs";
import { join } from "node:path";
import { type GitSetting, gitSettings } from "../../git/config.ts";
import { readSmallFile } from "../../model/small-file.ts";
import type { HostTools } from "./host-tools.ts";
import { type Expansion, expansionOf, standsForNothing } from "./preset.ts";
import { type KnownProjects, projectsAbove } from "./writable.ts";

/** What `@git` asks of the broker about a project. Real paths. */
export type GitProjects = KnownProjects & {
  /** The git folder that a project's `.git` file leads to, when that points back. */
  readonly linkedFolder: (project: string) => string | undefined;
  /** Whether a command in this project, or in any other, may write this path of the project. */
  readonly mayWrite: (path: string, project: string) => boolean;
};

/** 256 KiB: a config has some hundred bytes, and some more for each branch that follows another. */
const MAX_CONFIG = 256 * 1024;

/** The settings that name a project's remotes, and the project whose they are. */
type GitConfig = { readonly owner: string; readonly file: string | undefined };

/**
 * Where a project's remotes stand. Of a project in another one it is the outermost's: a command there can make a folder with
 * a `.git` of any content, and the next one would work in it.
 */
export function gitConfigOf(project: string, projects: GitProjects): GitConfig {
  const owner = projectsAbove(project, projects).at(-1) ?? project;
  const git = join(owner, ".git");
  const stat = lstatSync(git, { throwIfNoEntry: false });
  if (stat?.isDirectory() === true) return { owner, file: join(git, "config") };
  const folder = stat?.isFile() === true ? projects.linkedFolder(owner) : undefined;
  return { owner, file: folder === undefined ? undefined : join(folder, "config") };
}

/** The hosts of the remotes, as git would reach them: with what the operator's settings put in their place. */
export async function remotesOf(
  project: string,
  projects: GitProjects,
  tools: HostTools,
): Promise<Expansion> {
  const { owner, file } = gitConfigOf(project, projects);
  if (file === undefined) return standsForNothing("@git", noRemotes(project, owner));
  if (projects.mayWrite(file, owner))
    return standsForNothing("@git", `'${file}' does not count: fs.write lets commands write it`);
  const text = readSmallFile(file, MAX_CONFIG, projects.rules().uid);
  const settings = text === undefined ? undefined : gitSettings(text);
  if (settings === undefined) return standsForNothing("@git", `'${file}' cannot be read as git's settings`);
  const all = [...(await operatorSettings(tools)), ...settings];
  const urls = remoteUrls(all).flatMap((remote) => asUrl(remote) ?? []);
  return urls.length === 0
    ? standsForNothing("@git", `no remote in '${file}' is on another host`)
    : expansionOf("@git", { urls });
}

function noRemotes(project: string, owner: string): string {
  return owner === project
    ? "the project has no git folder of its own"
    : `'${project}' lies in '${owner}', whose commands could have written its remotes, and which has none. Name the hosts in net.allowed`;
}

/** Where fetches and pushes go (git-config(1), `url.<base>.insteadOf`, `pushInsteadOf`, `remote.<name>.pushurl`). */
export function remoteUrls(settings: readonly GitSetting[]): readonly string[] {
  const fetches = valuesOf(settings, /^remote\.(?:.+\.)?url$/);
  const pushes = valuesOf(settings, /^remote\.(?:.+\.)?pushurl$/);
  const instead = substitutes(settings, "url.insteadof");
  const pushInstead = substitutes(settings, "url.pushinsteadof");
  return [
    ...[...fetches, ...pushes].map((url) => substituted(url, instead) ?? url),
    ...fetches.flatMap((url) => substituted(url, pushInstead) ?? []),
  ];
}

function valuesOf(settings: readonly GitSetting[], name: RegExp): readonly string[] {
  return settings.filter((setting) => name.test(setting.name)).map(({ value }) => value);
}

type Substitute = { readonly prefix: string; readonly base: string };

function substitutes(settings: readonly GitSetting[], name: string): readonly Substitute[] {
  return settings
    .filter((setting) => setting.name === name && setting.subsection !== undefined)
    .map(({ value, subsection = "" }) => ({ prefix: value, base: subsection }));
}

/** The longest prefix wins. */
function substituted(url: string, all: readonly Substitute[]): string | undefined {
  const [best] = all
    .filter(({ prefix }) => url.startsWith(prefix))
    .toSorted((one, other) => other.prefix.length - one.prefix.length);
  return best === undefined ? undefined : best.base + url.slice(best.prefix.length);
}

/** A remote as a URL; undefined for a folder of this machine or a helper (`ext::`). git-clone(1), "GIT URLS". */
export function asUrl(remote: string): string | undefined {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(remote)) return remote;
  if (/^[a-z0-9]+::/i.test(remote)) return undefined;
  // `[user@]host:path`, unless a slash stands before the first colon; `[host:port]:path` as well.
  const [, bracketed, plain] = /^(?:[^@/:]+@)?(?:\[([^\]/]+)\]|([^/:@[\]]+)):/.exec(remote) ?? [];
  if (plain !== undefined) return `ssh://${plain}/`;
  if (bracketed === undefined) return undefined;
  const host = bracketed.slice(bracketed.indexOf("@") + 1);
  return host.split(":").length > 2 ? `ssh://[${host}]/` : `ssh://${host}/`;
}

/** The operator's own substitutes; none where git is missing or there are none. */
async function operatorSettings(tools: HostTools): Promise<readonly GitSetting[]> {
  const words = ["--includes", "-z", "--get-regexp", "^url\\..*\\.(push)?insteadof$"];
  const said = await Promise.all(
    ["--system", "--global"].map((scope) => tools.ask("git", ["config", scope, ...words])),
  );
  return said.flatMap((one) => (typeof one === "string" || !one.ok ? [] : settingsIn(one.out)));
}

/** `url.<base>.insteadof`, a line end, the value, a NUL. */
function settingsIn(text: string): readonly GitSetting[] {
  return text.split("\0").flatMap((item) => {
    const [, subsection, key = "", value = ""] = /^url\.(.*)\.([a-z]+)\n(.*)$/s.exec(item) ?? [];
    return subsection === undefined ? [] : [{ name: `url.${key}`, subsection, value }];
  });
}
