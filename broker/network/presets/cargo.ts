/** `@cargo`: the index used for crates.io, all other registries, and their download hosts. */
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { HostTools } from "./host-tools.ts";
import type { PresetHost, Urls } from "./preset.ts";

export function cargoSettings(host: PresetHost): readonly string[] {
  const folder = host.environment["CARGO_HOME"] ?? join(host.home, ".cargo");
  return [join(folder, "config.toml"), join(folder, "config")];
}

/** doc.rust-lang.org/cargo/reference/config.html, as printed by `cargo config get`. */
type Settings = {
  readonly source?: Readonly<
    Record<string, { readonly "replace-with"?: string; readonly registry?: string }>
  >;
  readonly registries?: Readonly<Record<string, { readonly index?: string }>>;
  readonly http?: { readonly proxy?: string; readonly cainfo?: string };
};

export async function askCargo(tools: HostTools): Promise<Urls | string> {
  const settings = await settingsOf(tools);
  if (typeof settings === "string") return settings;
  const cratesIo = replacementOf(settings) ?? (await ownIndex(tools));
  const registries = Object.values(settings.registries ?? {}).flatMap(({ index }) => index ?? []);
  if (cratesIo === undefined) return "cargo does not report its default registry";
  const indexes = [...new Set([cratesIo, ...registries])].filter((index) => index !== "");
  const found = await Promise.all(indexes.map((index) => downloadsOf(tools, index, settings)));
  return {
    urls: [...indexes, ...found.filter((urls) => typeof urls === "object").flat()],
    notes: found.filter((note) => typeof note === "string"),
  };
}

/**
 * Asks cargo for its merged settings. Stable cargo prints settings only with unstable options enabled
 * (`RUSTC_BOOTSTRAP`).
 */
async function settingsOf(tools: HostTools): Promise<Settings | string> {
  const words = ["-Z", "unstable-options", "config", "get", "--format", "json"];
  const said = await tools.ask("cargo", words, { RUSTC_BOOTSTRAP: "1" });
  if (typeof said === "string") return said;
  try {
    if (said.ok) return JSON.parse(said.out) as Settings;
  } catch {
    // Not JSON: another kind of cargo. The sentence below says so.
  }
  return "cargo does not report its settings";
}

/** Returns the replacement of crates.io: a URL, or empty for a local folder; undefined without replacement. */
function replacementOf({ source = {}, registries = {} }: Settings): string | undefined {
  let name = source["crates-io"]?.["replace-with"];
  if (name === undefined) return undefined;
  // A replacement may be replaced again; cargo itself reports a cycle.
  for (let hops = 0; hops < 16; hops += 1) {
    const next: string | undefined = source[name]?.["replace-with"];
    if (next === undefined) break;
    name = next;
  }
  return source[name]?.registry ?? registries[name]?.index ?? "";
}

/**
 * Asks cargo for its built-in index. With a dead proxy, cargo's error names the URL, and no packet leaves the machine.
 */
async function ownIndex(tools: HostTools): Promise<string | undefined> {
  const said = await withOwnHome((home) =>
    tools.ask("cargo", ["search", "--limit", "1", "x"], {
      CARGO_HOME: home,
      CARGO_NET_RETRY: "0",
      CARGO_HTTP_PROXY: "http://127.0.0.1:1",
    }),
  );
  const url =
    typeof said === "string" ? undefined : /`(https?:\/\/[^`\s]+)\/config\.json`/.exec(said.err)?.[1];
  return url === undefined ? undefined : `sparse+${url}/`;
}

/** doc.rust-lang.org/cargo/reference/registry-index.html: `dl` and `api` in the index's `config.json`. */
async function downloadsOf(
  tools: HostTools,
  index: string,
  { http = {} }: Settings,
): Promise<readonly string[] | string> {
  const unknown = `the host of the crates of '${index}' is unknown`;
  if (!index.startsWith("sparse+")) return `${unknown}: it is not a sparse index`;
  return await withOwnHome(async (home) => {
    const said = await tools.ask("cargo", ["search", "--limit", "1", "--index", index, "x"], {
      CARGO_HOME: home,
      CARGO_NET_RETRY: "0",
      CARGO_HTTP_TIMEOUT: "5",
      ...(http.proxy === undefined ? {} : { CARGO_HTTP_PROXY: http.proxy }),
      ...(http.cainfo === undefined ? {} : { CARGO_HTTP_CAINFO: http.cainfo }),
    });
    const config = typeof said === "string" ? undefined : await configIn(join(home, "registry/index"));
    return config === undefined ? `${unknown}: it did not answer` : [config.dl, config.api ?? ""];
  });
}

async function configIn(folder: string): Promise<{ readonly dl: string; readonly api?: string } | undefined> {
  try {
    const [index = ""] = await readdir(folder);
    const config: unknown = JSON.parse(await readFile(join(folder, index, "config.json"), "utf8"));
    return isConfig(config) ? config : undefined;
  } catch {
    // Missing or not JSON; the caller reports it.
    return undefined;
  }
}

function isConfig(value: unknown): value is { readonly dl: string; readonly api?: string } {
  if (typeof value !== "object" || value === null || !("dl" in value)) return false;
  return (
    typeof value.dl === "string" && (!("api" in value) || typeof value.api === "string" || value.api === null)
  );
}

/** Runs with an empty CARGO_HOME: the user's own holds a copy of the index that commands in worlds may write. */
async function withOwnHome<Result>(run: (home: string) => Promise<Result>): Promise<Result> {
  const home = await mkdtemp(join(tmpdir(), "substrate-cargo-"));
  try {
    return await run(home);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}
