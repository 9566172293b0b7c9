/** A place whose package managers are set to registries of the tests' own, as a user sets them. */
import type { Actor } from "../actors.ts";
import { TestInternet } from "../support/network/internet.ts";
import { gemPages } from "../support/registry/gems.ts";
import { REGISTRY_PATHS, type RegistryPath, registryPages } from "../support/registry/pages.ts";
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
  ".npmrc": `registry=${registryUrl("npm")}/\n`,
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
