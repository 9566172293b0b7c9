/** `@npm`: the registries in npm's settings, and the settings that npm in a world gets in place of the user's hidden file. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { HostTools } from "./host-tools.ts";
import { jsonObject, type PresetHost, type Urls } from "./preset.ts";

export function npmSettings({ home, environment }: PresetHost): readonly string[] {
  const own = environment["npm_config_userconfig"] ?? environment["NPM_CONFIG_USERCONFIG"];
  return [own ?? join(home, ".npmrc"), "/etc/npmrc", "/usr/local/etc/npmrc"];
}

/** Suppresses npm's log, its cache folder, and its check for a newer npm. */
const LEAVES_NOTHING = ["--logs-max=0", "--cache=/dev/null/none", "--no-update-notifier"];

const REGISTRY_KEY = /^(?:registry|@[^:]+:registry)$/;

/**
 * Settings without which npm installs other packages, elsewhere, or prints something else than for the user. Left out on
 * purpose: credentials, proxies (worlds have a network of their own), `cache` (the default lies in `fs.scratch`), and programs
 * but `script-shell`, which scripts are written for.
 */
const PLAIN_KEYS: ReadonlySet<string> = new Set(
  [
    "prefix script-shell cafile strict-ssl nodedir omit include omit-lockfile-registry-resolved",
    "replace-registry-host include-workspace-root optional dev production maxsockets",
    "save save-exact save-prefix package-lock lockfile-version install-strategy install-links prefer-dedupe bin-links",
    "legacy-peer-deps strict-peer-deps engine-strict ignore-scripts foreground-scripts before min-release-age tag",
    "prefer-offline prefer-online offline audit audit-level fund update-notifier loglevel progress color unicode",
    "init-author-name init-author-email init-author-url init-license init-version",
    "git-tag-version commit-hooks message tag-version-prefix preid sign-git-tag sign-git-commit",
  ].flatMap((line) => line.split(" ")),
);

/** No line end, and nothing that npm would replace by a variable (`${NAME}`) or take for a comment. */
const PLAIN_VALUE = /^[^\n\r\0;#$"'\\]{0,500}$/;

/** docs.npmjs.com/cli/commands/npm-config: `registry`, and an entry per scope (`@scope:registry`). */
export async function askNpm(tools: HostTools): Promise<Urls | string> {
  const said = await tools.ask("npm", ["config", "list", "--json", ...LEAVES_NOTHING]);
  if (typeof said === "string") return said;
  const settings = said.ok ? jsonObject(said.out) : undefined;
  if (settings === undefined) return "npm does not report its settings";
  const registries = Object.entries(settings)
    .filter(([key]) => REGISTRY_KEY.test(key))
    .map(([, url]) => (typeof url === "string" ? url : ""));
  const [file = ""] = npmSettings(tools.host);
  const lines = keysIn(file).map((key) => lineOf(key, settings[key]));
  return { urls: registries, settings: lines.filter((line) => line !== undefined) };
}

/** Whether the user's own npm settings hold one that worlds are told. */
export function setsNpm(host: PresetHost): boolean {
  const [file = ""] = npmSettings(host);
  return keysIn(file).length > 0;
}

/** Whether the user's own npm settings hold one that is no login, also those of pnpm and bun, which read the same file. */
export function setsMoreThanLogins(host: PresetHost): boolean {
  const [file = ""] = npmSettings(host);
  return linesOf(file).some(
    (line) => line.includes("=") && !/^\s*(?:[#;]|\/\/|_|email\b|username\b|always-auth\b)/.test(line),
  );
}

/** Lists the told keys set in a file, each once. The user's file also has tokens, so most commands cannot see it. */
function keysIn(file: string): readonly string[] {
  const keys = linesOf(file)
    // Skipped: another variable may hold a secret, and may be unset in the broker.
    .filter((line) => !line.replaceAll("${HOME}", "").includes("${"))
    .map((line) => line.split("=", 1)[0]?.trim().replace(/\[\]$/, "") ?? "");
  return [...new Set(keys)].filter((key) => REGISTRY_KEY.test(key) || PLAIN_KEYS.has(key));
}

function linesOf(file: string): readonly string[] {
  try {
    return readFileSync(file, "utf8").split("\n");
  } catch {
    // Missing or unreadable: npm has no settings there.
    return [];
  }
}

/** Returns a setting as npm reports it, a line for each value of a list; undefined for a value that may hold a secret. */
function lineOf(key: string, value: unknown): string | undefined {
  const text = typeof value === "string" ? value : undefined;
  if (REGISTRY_KEY.test(key)) {
    if (text === undefined || !URL.canParse(text) || holdsToken(text)) return undefined;
    return `${key}=${withoutCredentials(text)}`;
  }
  if (Array.isArray(value)) {
    const isPlain =
      value.length > 0 && value.every((one) => typeof one === "string" && PLAIN_VALUE.test(one));
    return isPlain ? value.map((one) => `${key}[]=${one}`).join("\n") : undefined;
  }
  const plain = typeof value === "boolean" || typeof value === "number" ? `${value}` : text;
  return plain !== undefined && PLAIN_VALUE.test(plain) ? `${key}=${plain}` : undefined;
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
