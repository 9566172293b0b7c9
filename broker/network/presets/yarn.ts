/**
 * The registries of yarn, part of `@npm` where the project uses yarn. Yarn itself is not run: `yarn` may be a launcher
 * that downloads a yarn first (corepack), or lie in the project, where commands can write it.
 */
import { BoundedMap } from "../../model/bounded-map.ts";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { fileIdentity } from "../../model/host-paths.ts";
import { readSmallFile } from "../../model/small-file.ts";
import type { HostTools } from "./host-tools.ts";
import type { PresetHost, Urls } from "./preset.ts";

/** The default registry of all yarn versions (yarnpkg.com/configuration/yarnrc#npmRegistryServer). */
const DEFAULT = "https://registry.yarnpkg.com";

/** Files of a project that uses yarn. */
const SIGNS = ["yarn.lock", ".yarnrc.yml", ".yarnrc"];

/** Largest package.json to be read; usual files take some kilobytes. */
const MAX_BYTES = 1024 * 1024;

/** The user's own settings: of yarn 2 and later, and of yarn 1. */
export function yarnSettings({ home }: PresetHost): readonly string[] {
  return [join(home, ".yarnrc.yml"), join(home, ".yarnrc")];
}

/**
 * Reads the registries in the user's yarn settings, including scopes; yarn's default when no registry for all packages
 * is set. Yarn 1 falls back to npm's settings, already in `@npm`. Returns a sentence for unreadable settings.
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
    notes: unread.map(() => `left out a registry of yarn that comes from a variable: '${modern}'`),
  };
}

/**
 * Detects projects that use yarn. A command can make its project look so, and gains only the user's own yarn
 * registries.
 */
export class YarnProjects {
  /** A cache by project: whether package.json names yarn, and the identity of that package.json. */
  readonly #known = new BoundedMap<string, { readonly identity: string; readonly uses: boolean }>(512);

  uses(project: string): boolean {
    if (SIGNS.some((name) => existsSync(join(project, name)))) return true;
    const file = join(project, "package.json");
    const stat = statSync(file, { throwIfNoEntry: false, bigint: true });
    if (stat === undefined || !stat.isFile() || stat.size > MAX_BYTES) return false;
    const identity = fileIdentity(stat);
    const before = this.#known.get(project);
    if (before?.identity === identity) return before.uses;
    // nodejs.org/api/packages.html#packagemanager
    // A command may have put a pipe there since.
    const text = readSmallFile(file, MAX_BYTES, Number(stat.uid)) ?? "";
    const uses = /"packageManager"\s*:\s*"yarn@/.test(text);
    this.#known.set(project, { identity, uses });
    return uses;
  }
}

function yamlIn(path: string): Readonly<Record<string, unknown>> | string {
  try {
    return asObject(parse(textOf(path) ?? ""));
  } catch {
    // Not YAML: yarn refuses the file too.
    return `'${path}' cannot be read as YAML`;
  }
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // Missing or unreadable: no settings there.
    return undefined;
  }
}

function asObject(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}
