/**
 * npm's settings in worlds: the user's own where `.npmrc` is hidden, and no retries where every registry is refused.
 */
import { readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { coverOf, type SettingsFile } from "../../world/backend.ts";
import { readAddress } from "./names/ranges.ts";
import type { HostPort } from "./names/names.ts";
import type { NetRules } from "./rules.ts";
import { HostTools } from "./presets/host-tools.ts";
import type { Expansion, PresetHost } from "./presets/preset.ts";
import type { Presets } from "./presets/presets.ts";
import { npmSettings, setsMoreThanLogins, setsNpm } from "./presets/npm.ts";

/**
 * npm treats a refused name as a transient fault: three retries, after 10 and 60 s, avoidable only by settings. The
 * settings' own comment tells readers inside the world their origin.
 */
const NOT_AGAIN = `; From substrate. The policy of this world allows none of npm's registries, and a name that is refused
; stays refused: trying again would only delay the error.
fetch-retries=0
`;

/**
 * The user's `.npmrc` also has tokens, so the shipped policies deny the file; npm would then use its
 * default registry, and a global folder (`prefix`) that the user cannot write.
 */
const OF_USER = `; From substrate. The registries and settings of this user, without credentials.
`;

/** npm's own settings take some hundred bytes. */
const MAX_BYTES = 64 * 1024;

/** Milliseconds until the next look at npm's settings files. */
const FRESH_MS = 1000;

/** Milliseconds that a new world waits for npm's first answer (takes about 150). */
const PATIENCE_MS = 2000;

const NONE: readonly SettingsFile[] = [];

/** npm's last answer: its registries, and the settings for worlds that refuse every registry. */
type Known = {
  readonly expansion: Expansion;
  readonly settings: readonly SettingsFile[];
  /** The settings for worlds that allow a registry. */
  readonly always: readonly SettingsFile[];
  /** Cache by rules, since every command asks. */
  readonly told: WeakMap<NetRules, readonly SettingsFile[]>;
};

export class NpmRetries {
  readonly #presets: Presets;
  #known: Known | undefined;
  #askedAt = -FRESH_MS;
  #first: Promise<void> | undefined;
  #user = { lookedAt: -FRESH_MS, hasSettings: false };
  /** The user's file when npm was last asked. */
  #stamp = "";

  constructor(presets: Presets) {
    this.#presets = presets;
  }

  /**
   * Returns npm's settings for a world with these rules (null: nothing is refused), from npm's last answer. Only the
   * first answer is awaited, and the one after the user's file has changed: a world made without the settings would slow
   * its session down, or be lost at a policy change. Never rejects.
   */
  async settingsFor(enforced: NetRules | null): Promise<readonly SettingsFile[]> {
    if (enforced === null && !this.#hasUserSettings()) return NONE;
    if (performance.now() - this.#askedAt >= FRESH_MS) {
      const before = this.#stamp;
      const asked = this.ask();
      if (this.#stamp !== before) await withinPatience(asked);
    }
    if (this.#known === undefined) await withinPatience(this.#first);
    return this.#known === undefined ? NONE : settingsBy(this.#known, enforced);
  }

  /** Says which programs may have installed otherwise than on the host, because the user's file is hidden from the world. */
  unseenBy(programs: ReadonlySet<string>, denyRead: readonly string[]): string | undefined {
    if (programs.size === 0 || !setsMoreThanLogins(this.#presets.host)) return undefined;
    const [file = ""] = npmSettings(this.#presets.host);
    if (!denyRead.some((pattern) => coverOf(pattern).covers(file))) return undefined;
    return `'${[...programs].join("' and '")}' did not see the settings of '${file}', which is hidden from commands because of its tokens; only npm is told its registries and most others. Lines in the project's own .npmrc count for all`;
  }

  /** Reads the user's file at most once per {@link FRESH_MS}, since every command asks. */
  #hasUserSettings(): boolean {
    const now = performance.now();
    if (now - this.#user.lookedAt >= FRESH_MS)
      this.#user = { lookedAt: now, hasSettings: setsNpm(this.#presets.host) };
    return this.#user.hasSettings;
  }

  /** Asks npm, or checks whether the last answer still holds. Never rejects. */
  ask(): Promise<void> {
    this.#askedAt = performance.now();
    this.#stamp = stampOf(this.#presets.host);
    const asked = this.#ask();
    this.#first ??= asked;
    return asked;
  }

  async #ask(): Promise<void> {
    const expansion = await this.#presets.expand("@npm", "/");
    if (this.#known?.expansion === expansion) return;
    const tools = new HostTools(this.#presets.host);
    const { settings: lines = [] } = expansion;
    const ofUser = lines.length === 0 ? "" : OF_USER + lines.map((line) => `${line}\n`).join("");
    const always = ofUser === "" ? NONE : builtIn(tools, ofUser);
    const settings = builtIn(tools, `${NOT_AGAIN}${ofUser}`);
    this.#known = { expansion, always, settings, told: new WeakMap() };
  }
}

/** Identifies the user's file and its text. */
function stampOf(host: PresetHost): string {
  const [file = ""] = npmSettings(host);
  try {
    const { ino, mtimeNs, size } = statSync(file, { bigint: true });
    return `${ino} ${mtimeNs} ${size}`;
  } catch {
    // Missing or unreadable: npm has no settings there.
    return "";
  }
}

function settingsBy(
  { expansion, always, settings, told }: Known,
  enforced: NetRules | null,
): readonly SettingsFile[] {
  if (enforced === null) return always;
  const before = told.get(enforced);
  if (before !== undefined) return before;
  const { entries } = expansion;
  const isRefused = entries.length > 0 && entries.every((place) => refuses(enforced, place));
  const chosen = isRefused ? settings : always;
  told.set(enforced, chosen);
  return chosen;
}

async function withinPatience(answer: Promise<void> | undefined): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, PATIENCE_MS);
  });
  await Promise.race([answer, late]);
  clearTimeout(timer);
}

function refuses(rules: NetRules, { host, port }: HostPort): boolean {
  const verdict = readAddress(host) === null ? rules.connection(host, port) : rules.address(host, port);
  return !verdict.allowed;
}

/**
 * Makes npm's built-in settings: `npmrc` in npm's own folder, usually missing. Every other file, variable and option
 * takes precedence (docs.npmjs.com/cli/configuring-npm/npmrc), so user settings stay. The host's own lines follow ours,
 * and of two lines the last wins.
 */
function builtIn(tools: HostTools, ours: string): readonly SettingsFile[] {
  const folder = npmFolder(tools);
  if (folder === undefined) return NONE;
  const path = join(folder, "npmrc");
  const own = publicText(path);
  return own === undefined ? NONE : [{ path, text: `${ours}${own}` }];
}

/** Finds the npm package of the `npm` on the PATH; undefined for a launcher, such as a version manager's. */
function npmFolder(tools: HostTools): string | undefined {
  const program = tools.where("npm");
  const folder = program === undefined ? undefined : dirname(dirname(program));
  return folder !== undefined && nameOf(publicText(join(folder, "package.json"))) === "npm"
    ? folder
    : undefined;
}

function nameOf(text: string | undefined): unknown {
  try {
    const value: unknown = JSON.parse(text ?? "");
    return typeof value === "object" && value !== null && "name" in value ? value.name : undefined;
  } catch {
    // Not a package: another program is called npm.
    return undefined;
  }
}

/**
 * Reads a world-readable file; a missing file counts as empty. Undefined for any other file: showing it in a world
 * would disclose its text.
 */
function publicText(path: string): string | undefined {
  try {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat === undefined) return "";
    if (!stat.isFile() || stat.size > MAX_BYTES || (stat.mode & 0o444) !== 0o444) return undefined;
    const text = readFileSync(path, "utf8");
    return text.includes("\0") ? undefined : text;
  } catch {
    // Unreadable: npm keeps its settings.
    return undefined;
  }
}
