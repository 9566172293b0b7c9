/** What npm is told in worlds: its registries, where the user's file is not seen; and not to try again where all are refused. */
import { readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { SettingsFile } from "../../world/backend.ts";
import { readAddress } from "./names/ranges.ts";
import type { HostPort } from "./names/names.ts";
import type { NetRules } from "./rules.ts";
import { HostTools } from "./presets/host-tools.ts";
import type { Expansion } from "./presets/preset.ts";
import type { Presets } from "./presets/presets.ts";
import { setsRegistry } from "./presets/tool-presets.ts";

/**
 * npm takes a name that is refused for a passing fault: it tries three times, after 10 and 60 s, and only settings change
 * that. The comment is for whoever asks inside where the setting comes from.
 */
const NOT_AGAIN = `; From substrate. The policy of this world allows none of npm's registries, and a name that is refused
; stays refused: trying again would only delay the error.
fetch-retries=0
`;

/** The user's `.npmrc` has tokens too, and is denied by the shipped policies: npm would ask its default registry instead. */
const REGISTRIES = `; From substrate. The registries that this user has set, without credentials.
`;

/** npm's own settings are some hundred bytes. */
const MAX_BYTES = 64 * 1024;

/** How long npm's answer is not asked for again, in milliseconds: that looks at its settings' files. */
const FRESH_MS = 1000;

/** How long a world is not made because npm has not answered yet, in milliseconds. It takes some 150. */
const PATIENCE_MS = 2000;

const NONE: readonly SettingsFile[] = [];

/** npm's last answer: where it looks, and what worlds that refuse all of that are told. */
type Known = {
  readonly expansion: Expansion;
  readonly settings: readonly SettingsFile[];
  /** The same where nothing is refused. */
  readonly always: readonly SettingsFile[];
  /** For rules that were asked about before: each command asks. */
  readonly told: WeakMap<NetRules, readonly SettingsFile[]>;
};

export class NpmRetries {
  readonly #presets: Presets;
  #known: Known | undefined;
  #askedAt = -FRESH_MS;
  #first: Promise<void> | undefined;
  #user = { lookedAt: -FRESH_MS, hasRegistry: false };

  constructor(presets: Presets) {
    this.#presets = presets;
  }

  /**
   * npm's settings in a world with these rules (null: nothing is refused there). By what npm has answered so far; only the
   * first answer is waited for, since a world that was made without it would keep its session slow, or be lost when
   * the policy changes. Never rejects.
   */
  async settingsFor(enforced: NetRules | null): Promise<readonly SettingsFile[]> {
    if (enforced === null && !this.#hasUserRegistry()) return NONE;
    if (performance.now() - this.#askedAt >= FRESH_MS) void this.ask();
    if (this.#known === undefined) await withinPatience(this.#first);
    return this.#known === undefined ? NONE : settingsBy(this.#known, enforced);
  }

  /** Looks at the user's file at most once in {@link FRESH_MS}: each command asks. */
  #hasUserRegistry(): boolean {
    const now = performance.now();
    if (now - this.#user.lookedAt >= FRESH_MS)
      this.#user = { lookedAt: now, hasRegistry: setsRegistry(this.#presets.host) };
    return this.#user.hasRegistry;
  }

  /** Asks npm, or looks whether its last answer still holds. Never rejects. */
  ask(): Promise<void> {
    this.#askedAt = performance.now();
    const asked = this.#ask();
    this.#first ??= asked;
    return asked;
  }

  async #ask(): Promise<void> {
    const expansion = await this.#presets.expand("@npm", "/");
    if (this.#known?.expansion === expansion) return;
    const tools = new HostTools(this.#presets.host);
    const { settings: lines = [] } = expansion;
    const registries = lines.length === 0 ? "" : REGISTRIES + lines.map((line) => `${line}\n`).join("");
    const always = registries === "" ? NONE : npmSettings(tools, registries);
    const settings = npmSettings(tools, `${NOT_AGAIN}${registries}`);
    this.#known = { expansion, always, settings, told: new WeakMap() };
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
 * The settings that npm brings along: `npmrc` in its own folder, which mostly is not there. Every other file, variable and
 * option comes before them (docs.npmjs.com/cli/configuring-npm/npmrc), so what anybody has set stays. What the host's own
 * file says comes after ours, and the last of two lines wins.
 */
function npmSettings(tools: HostTools, ours: string): readonly SettingsFile[] {
  const folder = npmFolder(tools);
  if (folder === undefined) return NONE;
  const path = join(folder, "npmrc");
  const own = publicText(path);
  return own === undefined ? NONE : [{ path, text: `${ours}${own}` }];
}

/** The package that `npm` on the PATH belongs to; undefined for what only starts one, as version managers do. */
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
    // No package: something else is called npm here.
    return undefined;
  }
}

/** What everybody may read; nothing when it is missing. Undefined for what a world could not show without giving it away. */
function publicText(path: string): string | undefined {
  try {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat === undefined) return "";
    if (!stat.isFile() || stat.size > MAX_BYTES || (stat.mode & 0o444) !== 0o444) return undefined;
    const text = readFileSync(path, "utf8");
    return text.includes("\0") ? undefined : text;
  } catch {
    // Not ours to look at: npm keeps what it has.
    return undefined;
  }
}
