import type { World } from "./world.ts";

/**
 * An overlay world of which everything is made but its project: nothing has run in it, nobody else gets it, and it ends
 * with its broker as worlds do.
 */
export interface PreparedWorld {
  readonly id: string;
  /** Settles when it waits for nothing but `begin`. Rejects, with what `WorldBackend.start` would throw, when it cannot be made. */
  readonly ready: Promise<void>;
  /** Settles when it can become no world any more, whatever the cause, or has become one. Never rejects. */
  readonly over: Promise<void>;
  /**
   * Mounts the overlay on the project as it is now and finishes the world; once only. Throws {@link WorldUnavailable};
   * nothing is left of it then.
   */
  begin(layers: string, signal: AbortSignal): Promise<World>;
  /** Ends it before it began. Settles when nothing of it is left. */
  end(cause: string): Promise<void>;
}
