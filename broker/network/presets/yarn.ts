/**
 * The registries of yarn, which `@npm` stands for too where the project uses yarn. Yarn itself is not asked: what is called
 * `yarn` may be a program that downloads one first (corepack), or lie in the project, where commands write it.
 */
import { BoundedMap } from "../../model/bounded-map.ts";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import type { HostTools } from "./host-tools.ts";
import type { PresetHost, Urls } from "./preset.ts";

/** Where each version of yarn looks when nobody has set it (yarnpkg.com/configuration/yarnrc#npmRegistryServer). */
const DEFAULT = "https://registry.yarnpkg.com";

/** Files that a project has which uses yarn. */
const SIGNS = ["yarn.lock", ".yarnrc.yml", ".yarnrc"];

/** A package.json that is larger is not read: it is some kilobytes. */
const MAX_BYTES = 1024 * 1024;

/** The user's own: of versions from 2 on, and of version 1. */
export function yarnSettings({ home }: PresetHost): readonly string[] {
  return [join(home, ".yarnrc.yml"), join(home, ".yarnrc")];
}

/**
 * The registries that the user has set for yarn, scopes included; yarn's default where no registry for all packages is set.
 * Version 1 falls back to npm's settings, which are in `@npm` already. A sentence for settings that cannot be read.
 */
export function askYarn({ host }: HostTools): Urls | string {
  const [modern = "", classic = ""] = yarnSettings(host);
  const settings = yamlIn(modern);
  if (typeof settings === "string") return settings;
  const own = [
    host.environment["YARN_NPM_REGISTRY_SERVER"] ?? settings["npmRegistryServer"],
    host.environment["YARN_REGISTRY"] ?? /^registry\s+"?([^"\s]+)"?\s*$/m.exec(textOf(classic) ?? "")?.[1],
  ];
  const scopes = Object.values(asObject(settings["npmScopes"])).map(
    (one) => asObject(one)["npmRegistryServer"],
  );
  const registries = own.filter((url) => typeof url === "string");
  const urls = [...(registries.length === 0 ? [DEFAULT] : registries), ...scopes].filter(
    (url) => typeof url === "string",
  );
  const unread = urls.filter((url) => url.includes("${"));
  return {
    urls: urls.filter((url) => !unread.includes(url)),
    notes: unread.map(() => `a registry of yarn that a variable names is left out: '${modern}'`),
  };
}

/** Which projects use yarn. A command can have its project look so, and gains what the user has set for yarn. */
export class YarnProjects {
  /** A cache by project: whether package.json names yarn, and the identity of that package.json. */
  readonly #known = new BoundedMap<string, { readonly identity: string; readonly uses: boolean }>(512);

  uses(project: string): boolean {
    if (SIGNS.some((name) => existsSync(join(project, name)))) return true;
    const file = join(project, "package.json");
    const stat = statSync(file, { throwIfNoEntry: false, bigint: true });
    if (stat === undefined || !stat.isFile() || stat.size > MAX_BYTES) return false;
    const identity = `${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeNs}:${stat.ctimeNs}`;
    const before = this.#known.get(project);
    if (before?.identity === identity) return before.uses;
    // nodejs.org/api/packages.html#packagemanager
    const uses = /"packageManager"\s*:\s*"yarn@/.test(textOf(file) ?? "");
    this.#known.set(project, { identity, uses });
    return uses;
  }
}

function yamlIn(path: string): Readonly<Record<string, unknown>> | string {
  try {
    return asObject(parse(textOf(path) ?? ""));
  } catch {
    // No YAML: yarn refuses it too.
    return `'${path}' cannot be read as YAML`;
  }
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // Missing or not ours to read: nothing is set there.
    return undefined;
  }
}

function asObject(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}
