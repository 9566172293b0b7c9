/** Presets answered by tools: their settings files, and the questions to the tools. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { PresetName } from "../names/entries.ts";
import { askCargo, cargoSettings } from "./cargo.ts";
import type { HostTools } from "./host-tools.ts";
import { askPip, pipSettings } from "./pip.ts";
import type { PresetHost, ToolPreset, Urls } from "./preset.ts";

/** All presets but `@git`, which depends on the project. */
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

/** Suppresses npm's log, its cache folder, and its check for a newer npm. */
const LEAVES_NOTHING = ["--logs-max=0", "--cache=/dev/null/none", "--no-update-notifier"];

const REGISTRY_KEY = /^(?:registry|@[^:]+:registry)$/;

/** docs.npmjs.com/cli/commands/npm-config: `registry`, and an entry per scope (`@scope:registry`). */
async function askNpm(tools: HostTools): Promise<Urls | string> {
  const said = await tools.ask("npm", ["config", "list", "--json", ...LEAVES_NOTHING]);
  if (typeof said === "string") return said;
  const settings = said.ok ? jsonObject(said.out) : undefined;
  if (settings === undefined) return "npm does not report its settings";
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

/** Whether the user's own npm settings name a registry. */
export function setsRegistry(host: PresetHost): boolean {
  const [file = ""] = npmSettings(host);
  return registryKeysIn(file).length > 0;
}

/** Lists the registry keys set in a file. The user's file also has tokens, so most commands cannot see it. */
function registryKeysIn(file: string): readonly string[] {
  try {
    const keys = readFileSync(file, "utf8")
      .split("\n")
      // Skipped: a variable may hold a secret, and may be unset in the broker.
      .filter((line) => !line.includes("${"))
      .map((line) => line.split("=", 1)[0]?.trim() ?? "");
    return keys.filter((key) => REGISTRY_KEY.test(key));
  } catch {
    // Missing or unreadable: npm has no settings there.
    return [];
  }
}

/** Some package hosts have a token in the path: random letters and digits, or a UUID. */
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

/** go.dev/ref/mod: GOPROXY lists URLs, `direct` and `off`; GOSUMDB is a name or key, with a URL for another server. */
async function askGo(tools: HostTools): Promise<Urls | string> {
  const said = await tools.ask("go", ["env", "-json", "GOPROXY", "GOSUMDB"], { GOTOOLCHAIN: "local" });
  if (typeof said === "string") return said;
  const settings = said.ok ? jsonObject(said.out) : undefined;
  if (settings === undefined) return "go does not report its settings";
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
  return said.ok ? { urls: linesOf(said.out) } : "gem does not report its settings";
}

/**
 * apt-get(8): all sources of sources.list and its folder, in both formats. `indextargets` would list only sources
 * already downloaded.
 */
async function askApt(tools: HostTools): Promise<Urls | string> {
  const said = await tools.ask("apt-get", ["update", "--print-uris"]);
  if (typeof said === "string") return said;
  if (!said.ok) return "apt-get does not report its settings";
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
    // Not JSON: a tool too old for the option, or another program of the same name.
    return undefined;
  }
}
