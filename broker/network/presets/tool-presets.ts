/** Presets answered by tools: their settings files, and the questions to the tools. */
import { join } from "node:path";
import type { PresetName } from "../names/entries.ts";
import { askCargo, cargoSettings } from "./cargo.ts";
import type { HostTools } from "./host-tools.ts";
import { askNpm, npmSettings } from "./npm.ts";
import { askPip, pipSettings } from "./pip.ts";
import { jsonObject, type PresetHost, type ToolPreset, type Urls } from "./preset.ts";

/** All presets but `@git`, which depends on the project. */
export const TOOL_PRESETS: Readonly<Record<Exclude<PresetName, "@git">, ToolPreset>> = {
  "@npm": { settings: npmSettings, ask: askNpm },
  "@pip": { settings: pipSettings, ask: askPip },
  "@cargo": { settings: cargoSettings, ask: askCargo },
  "@go": { settings: goSettings, ask: askGo },
  "@gem": { settings: gemSettings, ask: askGem },
  "@apt": { settings: () => ["/etc/apt/sources.list", "/etc/apt/sources.list.d"], ask: askApt },
};

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
  if (!said.ok) return "gem does not report its settings";
  const sources = linesOf(said.out);
  // RubyGems and Bundler read the index of rubygems.org from a host of its own (rubygems/source.rb, bundler/fetcher/base.rb).
  const index = sources.some((url) => /^https:\/\/rubygems\.org\/?$/.test(url))
    ? ["https://index.rubygems.org"]
    : [];
  return { urls: [...sources, ...index] };
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
