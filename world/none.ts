/** The backend of a host where no world can be made: everything that runs nothing works, and a command is refused. */
import type { Isolation } from "../schemas/generated/types.ts";
import type { HostCheck } from "./doctor/face.ts";
import { WorldUnavailable } from "./model/unavailable.ts";
import type { World, WorldBackend } from "./model/world.ts";

export class NoWorlds implements WorldBackend {
  readonly name = "none";
  readonly held = null;
  readonly #host: string;

  /** @param platform `process.platform` of the host */
  constructor(platform: NodeJS.Platform) {
    this.#host = platform === "darwin" ? "macOS" : platform;
  }

  filterHash(): null {
    return null;
  }

  probe(): Promise<Isolation> {
    return Promise.reject(this.#refusal());
  }

  start(): Promise<World> {
    return Promise.reject(this.#refusal());
  }

  dropHeld(): Promise<void> {
    return Promise.resolve();
  }

  expireHeld(): Promise<number> {
    return Promise.resolve(0);
  }

  dropLeft(): Promise<number> {
    return Promise.resolve(0);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  /** The doctor's only check: what is missing, and what to do. */
  checks(): readonly HostCheck[] {
    const { message, hint } = this.#refusal();
    const finding = { verdict: "missing", seen: message, mend: [`# ${hint}`] } as const;
    return [
      { name: "worlds", what: "a world on this host", needed: true, run: () => Promise.resolve(finding) },
    ];
  }

  #refusal(): WorldUnavailable {
    return new WorldUnavailable(
      `Substrate needs a Linux VM on ${this.#host}: commands run in worlds, which only Linux has`,
      "Install Substrate inside a Linux virtual machine that mounts the project, and run the command there. 'substrate check', 'policy' and 'trace' work here",
    );
  }
}
