/** The presets that stand for what a tool is set to: where its settings lie, and how it is asked. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { PresetName } from "../names/entries.ts";
import { askCargo, cargoSettings } from "./cargo.ts";
import type { HostTools } from "./host-tools.ts";
import { askPip, pipSettings } from "./pip.ts";
import type { PresetHost, ToolPreset, Urls } from "./preset.ts";

/** All but `@git`, whose settings are the project's. */
export const TOOL_PRESETS: Readonly<Record<Exclude<PresetName, "@git">, ToolPreset>> = {
  "@npm": { settings: npmSettings, ask: askNpm },
  "@pip": { settings: pipSettings, ask: askPip },
  "@cargo": { settings: cargoSettings, ask: askCargo },
  "@go": { settings: goSettings, ask: askGo },
  "@gem": { settings: gemSettings, ask: askGem },
  "@apt": { settings: () => ["/etc/apt/sources.list", "/etc/apt/sources.list.d"], ask: askApt },
};

function npmSettings({ home, environment }: PresetHost): readonly string[] {
  const own = environment["npm_config_userconfig"] ?? environment["NPM_CONFIG_USERCONFIG"];
  return [own ?? join(home, ".npmrc"), "/etc/npmrc", "/usr/local/etc/npmrc"];
}

/** Its log and its cache, which it makes when they are missing, and a look at the registry for a newer npm. */
const LEAVES_NOTHING = ["--logs-max=0", "--cache=/dev/null/none", "--no-update-notifier"];

const REGISTRY_KEY = /^(?:registry|@[^:]+:registry)$/;

/** docs.npmjs.com/cli/commands/npm-config: `registry`, and one for each scope (`@scope:registry`). */
async function askNpm(tools: HostTools): Promise<Urls | string> {
  const said = await tools.ask("npm", ["config", "list", "--json", ...LEAVES_NOTHING]);
  if (typeof said === "string") return said;
  const settings = said.ok ? jsonObject(said.out) : undefined;
  if (settings === undefined) return "npm does not say what it is set to";
  const registries = Object.entries(settings)
    .filter(([key]) => REGISTRY_KEY.test(key))
    .map(([key, url]) => [key, textOf(url)] as const);
  const [file = ""] = npmSettings(tools.host);
  const keys = registryKeysIn(file);
  const byUser = registries.filter(
    ([key, url]) => keys.includes(key) && URL.canParse(url) && !holdsToken(url),
  );
  return {
    urls: registries.map(([, url]) => url),
    settings: byUser.map(([key, url]) => `${key}=${withoutCredentials(url)}`),
  };
}

/** Whether the user's own settings of npm name a registry. */
export function setsRegistry(host: PresetHost): boolean {
  const [file = ""] = npmSettings(host);
  return registryKeysIn(file).length > 0;
}

/** What of npm's registries a file sets. The user's has tokens too, and so commands mostly do not see it. */
function registryKeysIn(file: string): readonly string[] {
  try {
    const keys = readFileSync(file, "utf8")
      .split("\n")
      // What stands for a variable may be a secret, and is empty here.
      .filter((line) => !line.includes("${"))
      .map((line) => line.split("=", 1)[0]?.trim() ?? "");
    return keys.filter((key) => REGISTRY_KEY.test(key));
  } catch {
    // Missing or not ours to read: npm was not told anything there.
    return [];
  }
}

/** Some hosts of packages have their token in the path: letters and digits without order, or a UUID. */
const TOKEN = /^(?=[^/]*\d)(?=[^/]*[a-z])[a-z0-9]{12,}$/i;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

function holdsToken(text: string): boolean {
  const segments = new URL(text).pathname.split("/");
  return segments.some(
    (segment) => UUID.test(segment) || segment.split(/[-_.~:@%]/).some((part) => TOKEN.test(part)),
  );
}

function withoutCredentials(text: string): string {
  const url = new URL(text);
  url.search = "";
  url.hash = "";
  url.username = "";
  url.password = "";
  return url.href;
}

function goSettings({ home, environment }: PresetHost): readonly string[] {
  const folder = environment["XDG_CONFIG_HOME"] ?? join(home, ".config");
  return [environment["GOENV"] ?? join(folder, "go/env")];
}

/** go.dev/ref/mod: GOPROXY is a list of URLs, `direct` and `off`; GOSUMDB a name or key, and a URL where it is another's. */
async function askGo(tools: HostTools): Promise<Urls | string> {
  const said = await tools.ask("go", ["env", "-json", "GOPROXY", "GOSUMDB"], { GOTOOLCHAIN: "local" });
  if (typeof said === "string") return said;
  const settings = said.ok ? jsonObject(said.out) : undefined;
  if (settings === undefined) return "go does not say what it is set to";
  const proxies = textOf(settings["GOPROXY"]).split(/[,|]/);
  const [database = "", url] = textOf(settings["GOSUMDB"]).split(/\s+/);
  const sums = database === "off" || database === "" ? [] : [url ?? `https://${database.split("+")[0]}`];
  return { urls: [...proxies, ...sums] };
}

function gemSettings({ home, environment }: PresetHost): readonly string[] {
  return [environment["GEMRC"] ?? join(home, ".gemrc"), join(home, ".config/gem/gemrc"), "/etc/gemrc"];
}

async function askGem(tools: HostTools): Promise<Urls | string> {
  const said = await tools.ask("gem", ["sources", "--list"]);
  if (typeof said === "string") return said;
  return said.ok ? { urls: linesOf(said.out) } : "gem does not say what it is set to";
}

/**
 * apt-get(8): what sources.list and its folder come to, in either of their formats. `indextargets` would name only what was
 * downloaded once.
 */
async function askApt(tools: HostTools): Promise<Urls | string> {
  const said = await tools.ask("apt-get", ["update", "--print-uris"]);
  if (typeof said === "string") return said;
  if (!said.ok) return "apt-get does not say what it is set to";
  return { urls: [...said.out.matchAll(/^'([^'\n]+)'/gm)].map(([, url = ""]) => url) };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function linesOf(text: string): readonly string[] {
  return [...new Set(text.split("\n").map((line) => line.trim()))];
}

function jsonObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? { ...value } : undefined;
  } catch {
    // Not JSON: a tool too old to know the option, or something else that goes by its name.
    return undefined;
  }
}
