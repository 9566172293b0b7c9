/** The folders that config.yaml names, by real path: a home behind a link, or a link as a root, is the same folder. */
import type { ConfigDocument } from "../../schemas/generated/types.ts";
import { inHome } from "./assignment.ts";
import { realPlace } from "../model/real-place.ts";

export type Listed = {
  /** `projects`: the roots under which projects may lie. */
  readonly roots: readonly string[];
  /** `policies.projects`. */
  readonly policies: readonly (readonly [folder: string, policy: string])[];
  /** All of these folders. */
  readonly folders: readonly string[];
};

/** Links are followed again after this time: a person may point one elsewhere. */
const BELIEVED_MS = 500;

export class ListedFolders {
  readonly #home: string;
  #of: ConfigDocument | undefined;
  #until = 0;
  #listed: Listed = { roots: [], policies: [], folders: [] };

  constructor(home: string) {
    this.#home = home;
  }

  /** `config` is the settings as they are now: the same object while they have not been read again. */
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
