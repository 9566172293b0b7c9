/** The folders named in config.yaml, by real path: a home behind a link, or a link as a root, is the same folder. */
import type { ConfigDocument } from "../../schemas/generated/types.ts";
import { inHome } from "./assignment.ts";
import { realPlace } from "../model/real-place.ts";

export type Listed = {
  /** `projects`: the root folders of projects. */
  readonly roots: readonly string[];
  /** `policies.projects`. */
  readonly policies: readonly (readonly [folder: string, policy: string])[];
  /** All root folders and policy folders. */
  readonly folders: readonly string[];
};

/** Lifetime of resolved links in milliseconds: a person may redirect a link. */
const BELIEVED_MS = 500;

export class ListedFolders {
  readonly #home: string;
  #of: ConfigDocument | undefined;
  #until = 0;
  #listed: Listed = { roots: [], policies: [], folders: [] };

  constructor(home: string) {
    this.#home = home;
  }

  /** @param config current settings: the same object until the file is read again. */
  of(config: ConfigDocument): Listed {
    const now = performance.now();
    if (config === this.#of && now < this.#until) return this.#listed;
    const roots = (config.projects ?? []).map((path) => this.#place(path));
    const policies = Object.entries(config.policies?.projects ?? {}).map(
      ([path, name]) => [this.#place(path), name] as const,
    );
    this.#of = config;
    this.#until = now + BELIEVED_MS;
    this.#listed = { roots, policies, folders: [...roots, ...policies.map(([folder]) => folder)] };
    return this.#listed;
  }

  #place(path: string): string {
    return realPlace(inHome(path, this.#home));
  }
}
