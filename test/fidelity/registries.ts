/** A place whose package managers are set to registries of the tests' own, as a user sets them. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TestInternet } from "../support/network/internet.ts";
import {
  type Pages,
  REGISTRY_PATHS,
  type RegistryPath,
  SAYS,
  registryPages,
} from "../support/registry/pages.ts";
import type { Actor } from "../support/users/users.ts";
import { Place } from "./place.ts";

/**
 * Each at an address of its own, so that what one preset stands for opens no other registry. Addresses, and no names: outside
 * of worlds this machine's own resolver is asked, which does not know the tests' names.
 */
export function registryUrl(path: RegistryPath): string {
  return `http://${addressOf(path)}/${path}`;
}

function addressOf(path: RegistryPath): string {
  return `203.0.113.${101 + REGISTRY_PATHS.indexOf(path)}`;
}

/** In the home folder. The presets of the shipped policies stand for what these say. */
const SETTINGS: Readonly<Record<string, string>> = {
  ".npmrc": `registry=${registryUrl("npm")}/\nprefix=~/.npm-global\nsave-prefix=~\n`,
  ".yarnrc.yml": `npmRegistryServer: "${registryUrl("npm")}"\nunsafeHttpWhitelist: ["${addressOf("npm")}"]\nenableTelemetry: false\n`,
  // What pnpm says to set where it cannot link from the home's store to the project; else pnpm 12 keeps one in node_modules.
  ".config/pnpm/config.yaml": "storeDir: ~/.local/share/pnpm/store\n",
  ".config/pip/pip.conf": `[global]\nindex-url = ${registryUrl("pypi")}/simple\ntrusted-host = ${addressOf("pypi")}\n`,
  ".cargo/config.toml": `[source.crates-io]\nreplace-with = "own"\n[source.own]\nregistry = "sparse+${registryUrl("cargo")}/"\n`,
  ".config/go/env": `GOPROXY=${registryUrl("go")}\nGOSUMDB=off\n`,
  ".m2/settings.xml": `<settings><mirrors><mirror><id>own</id><mirrorOf>central</mirrorOf><url>${registryUrl("maven")}</url></mirror></mirrors></settings>\n`,
  ".gemrc": `---\n:sources:\n- ${registryUrl("gems")}/\ngem: --user-install\n`,
};

/** Java takes the home folder from the user database, where the tests' own is not: nothing may be written in a person's. */
function javaHome(home: string): Readonly<Record<string, string>> {
  return { MAVEN_OPTS: `-Duser.home=${home}`, GRADLE_USER_HOME: `${home}/.gradle` };
}

/** Entries of the operator's: no preset asks these tools for their registries, and the shipped policies name the usual ones. */
const MORE_NET = (["composer", "maven"] as const).map((path) => `${addressOf(path)}/32:80`);

export class Registries {
  readonly #actor: Actor;
  #internet: TestInternet | undefined;
  #place: Promise<Place | string> | undefined;

  constructor(actor: Actor) {
    this.#actor = actor;
  }

  /** Made when it is first wanted. A sentence where this machine has no such internet. */
  place(): Promise<Place | string> {
    this.#place ??= this.#open();
    return this.#place;
  }

  async close(): Promise<void> {
    const place = await this.#place;
    if (place instanceof Place) await place.stop();
    await this.#internet?.close();
  }

  async #open(): Promise<Place | string> {
    try {
      this.#internet = await TestInternet.open({ pages: { ...registryPages(registryUrl), ...gemPages() } });
    } catch (error) {
      return `no network namespace with registries could be made: ${String(error)}`;
    }
    return await Place.start(this.#actor, {
      ...{ within: this.#internet.enter, settings: SETTINGS, variables: javaHome, moreNet: MORE_NET },
    });
  }
}

// A registry of one gem, made by the Ruby that is installed: its specifications are Ruby's own format.

const SPEC = `Gem::Specification.new do |s|
  s.name = 'thing'; s.version = '1.0.0'; s.summary = 'A thing'; s.authors = ['A Person']; s.files = ['lib/thing.rb']
  s.homepage = 'https://example.test'; s.license = 'MIT'; s.date = '2020-01-01'
end
`;

/** guides.rubygems.org/rubygems-org-compact-index-api, and the older index that it stands beside. */
const MARSHAL = `require 'rubygems'; require 'zlib'
spec = Gem::Specification.load('thing.gemspec'); spec.loaded_from = nil
File.binwrite('quick', Zlib::Deflate.deflate(Marshal.dump(spec)))
index = Marshal.dump([['thing', Gem::Version.new('1.0.0'), 'ruby']])
Zlib::GzipWriter.open('specs') { |gz| gz.write(index) }
Zlib::GzipWriter.open('none') { |gz| gz.write(Marshal.dump([])) }
`;

/** Empty where Ruby is missing: no gem can be built, and no client asks for one. */
export function gemPages(): Pages {
  const folder = mkdtempSync(join(tmpdir(), "sb-gems-"));
  try {
    mkdirSync(join(folder, "lib"));
    writeFileSync(join(folder, "lib/thing.rb"), `THING_SAYS = ${JSON.stringify(SAYS)}\n`);
    writeFileSync(join(folder, "thing.gemspec"), SPEC);
    const made = [
      spawnSync("gem", ["build", "--silent", "thing.gemspec"], { cwd: folder }),
      spawnSync("ruby", ["-e", MARSHAL], { cwd: folder }),
    ];
    if (made.some(({ status }) => status !== 0)) return {};
    return pagesFrom((name) => readFileSync(join(folder, name)));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function pagesFrom(read: (name: string) => Buffer): Pages {
  const gem = read("thing-1.0.0.gem");
  const info = `---\n1.0.0 |checksum:${createHash("sha256").update(gem).digest("hex")}\n`;
  return {
    "/gems/gems/thing-1.0.0.gem": gem,
    "/gems/quick/Marshal.4.8/thing-1.0.0.gemspec.rz": read("quick"),
    "/gems/specs.4.8.gz": read("specs"),
    "/gems/latest_specs.4.8.gz": read("specs"),
    "/gems/prerelease_specs.4.8.gz": read("none"),
    "/gems/info/thing": info,
    "/gems/names": "---\nthing\n",
    "/gems/versions": `created_at: 2020-01-01T00:00:00Z\n---\nthing 1.0.0 ${createHash("md5").update(info).digest("hex")}\n`,
  };
}
