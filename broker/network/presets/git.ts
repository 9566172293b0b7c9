/**
 * `@git`: the remotes of a project. The broker parses `.git/config` and never runs git there: the file can name
 * programs.
 */
import { lstatSync } from "node:fs";
import { join } from "node:path";
import { type GitSetting, gitSettings } from "../../git/config.ts";
import type { Remotes } from "../../git/remotes.ts";
import { readSmallFile } from "../../model/small-file.ts";
import type { HostTools } from "./host-tools.ts";
import { type Expansion, expansionOf, standsForNothing } from "./preset.ts";
import { type KnownProjects, projectsAbove } from "./writable.ts";

/** `@git`'s questions to the broker about a project. Real paths. */
export type GitProjects = KnownProjects & {
  /** The git folder linked by a project's `.git` file, if the folder links back. */
  readonly linkedFolder: (project: string) => string | undefined;
  /** Whether a command in this or any other project may write this path of the project. */
  readonly mayWrite: (path: string, project: string) => boolean;
  /** What commands did to the remotes in a settings file. */
  readonly remotes: Pick<Remotes, "isCommands" | "recordsOf">;
};

/** 256 KiB: a config takes some hundred bytes, plus some for each tracking branch. */
const MAX_CONFIG = 256 * 1024;

/** The settings file with the remotes, and its project. */
type GitConfig = { readonly owner: string; readonly file: string | undefined };

/**
 * Finds the file with a project's remotes. In nested projects the outermost counts: a command there can make a folder
 * with any `.git`, and the next command would work in that folder.
 */
export function gitConfigOf(project: string, projects: GitProjects): GitConfig {
  const owner = projectsAbove(project, projects).at(-1) ?? project;
  const git = join(owner, ".git");
  const stat = lstatSync(git, { throwIfNoEntry: false });
  if (stat?.isDirectory() === true) return { owner, file: join(git, "config") };
  const folder = stat?.isFile() === true ? projects.linkedFolder(owner) : undefined;
  return { owner, file: folder === undefined ? undefined : join(folder, "config") };
}

/** Lists the hosts of the remotes after the operator's own URL substitutions. */
export async function remotesOf(
  project: string,
  projects: GitProjects,
  tools: HostTools,
): Promise<Expansion> {
  const { owner, file } = gitConfigOf(project, projects);
  if (file === undefined) return standsForNothing("@git", noRemotes(project, owner));
  if (projects.mayWrite(file, owner))
    return standsForNothing("@git", `ignored '${file}': fs.write lets commands write it`);
  const text = readSmallFile(file, MAX_CONFIG, projects.rules().uid);
  const settings = text === undefined ? undefined : gitSettings(text);
  if (settings === undefined) return standsForNothing("@git", `'${file}' cannot be read as git's settings`);
  const isCommands = projects.remotes.isCommands(file, settings);
  const [theirs, persons] = partition(settings, ({ name, value }) => ADDRESS.test(name) && isCommands(value));
  const all = [...(await operatorSettings(tools)), ...persons];
  const urls = remoteUrls(all).flatMap((remote) => asUrl(remote) ?? []);
  if (theirs.length > 0) return expansionOf("@git", { urls, notes: [leftOut(file, theirs)] });
  return urls.length === 0
    ? standsForNothing("@git", `'${file}' has no remote on another host`)
    : expansionOf("@git", { urls });
}

function leftOut(file: string, theirs: readonly GitSetting[]): string {
  const names = [...new Set(theirs.map(({ subsection = "" }) => `'${subsection}'`))].slice(0, 5).join(", ");
  return `left out ${theirs.length === 1 ? "a remote" : `${theirs.length} addresses`} in '${file}' that a command wrote or could have written (${names}). Name the host in net.allowed`;
}

function partition<T>(all: readonly T[], isFirst: (one: T) => boolean): [readonly T[], readonly T[]] {
  return [all.filter(isFirst), all.filter((one) => !isFirst(one))];
}

const ADDRESS = /^remote\.(?:.+\.)?(?:push)?url$/;

function noRemotes(project: string, owner: string): string {
  return owner === project
    ? "the project has no git folder of its own"
    : `'${project}' is in '${owner}', which has no remotes; the remotes of '${project}' do not count, because commands in '${owner}' could have written them. Name the hosts in net.allowed`;
}

/**
 * Lists URLs of fetches and pushes (git-config(1), `url.<base>.insteadOf`, `pushInsteadOf`, `remote.<name>.pushurl`).
 */
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

/** Converts a remote to a URL; undefined for a local folder or a helper (`ext::`). git-clone(1), "GIT URLS". */
export function asUrl(remote: string): string | undefined {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(remote)) return remote;
  if (/^[a-z0-9]+::/i.test(remote)) return undefined;
  // `[user@]host:path`, unless a slash precedes the first colon; also `[host:port]:path`.
  const [, bracketed, plain] = /^(?:[^@/:]+@)?(?:\[([^\]/]+)\]|([^/:@[\]]+)):/.exec(remote) ?? [];
  if (plain !== undefined) return `ssh://${plain}/`;
  if (bracketed === undefined) return undefined;
  const host = bracketed.slice(bracketed.indexOf("@") + 1);
  return host.split(":").length > 2 ? `ssh://[${host}]/` : `ssh://${host}/`;
}

/** Reads the operator's own URL substitutions; empty when git or the settings are missing. */
async function operatorSettings(tools: HostTools): Promise<readonly GitSetting[]> {
  const words = ["--includes", "-z", "--get-regexp", "^url\\..*\\.(push)?insteadof$"];
  const said = await Promise.all(
    ["--system", "--global"].map((scope) => tools.ask("git", ["config", scope, ...words])),
  );
  return said.flatMap((one) => (typeof one === "string" || !one.ok ? [] : settingsIn(one.out)));
}

/** Format: `url.<base>.insteadof`, a line feed, the value, a NUL. */
function settingsIn(text: string): readonly GitSetting[] {
  return text.split("\0").flatMap((item) => {
    const [, subsection, key = "", value = ""] = /^url\.(.*)\.([a-z]+)\n(.*)$/s.exec(item) ?? [];
    return subsection === undefined ? [] : [{ name: `url.${key}`, subsection, value }];
  });
}
