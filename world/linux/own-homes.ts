/** Worlds with a home of their own: several may have the same, and none may move what is mounted in another's. */
import { FRAME, TAG } from "../../schemas/generated/frames.ts";
import { errnoName } from "../model/errno.ts";
import { KeyedMutex } from "../model/keyed-mutex.ts";
import { WorldUnavailable } from "../model/unavailable.ts";
import type { OwnHome, World } from "../model/world.ts";
import { type HomePlace, pinsFor } from "../plan/own-home.ts";
import { FolderQuestions } from "./folder-questions.ts";
import { decodeFields, decodeNumber } from "./frame-codec.ts";
import { prepareHomePlaces } from "./home-places.ts";

/** Time limit; init makes a mount per folder. A silent world cannot be trusted with a home, so it is ended. */
const PATIENCE_MS = 5000;

/** A world that keeps folders of its home in place. */
type Pinning = World & { readonly pins: Pins };

/**
 * A mount lies on a folder, not on a path: a command of another world that may rename the folder, or remove it, would move or
 * detach the mount. So before a world is made, every other world of its home pins the folders of its mount points; and before its
 * first command, the new world pins theirs.
 */
export class OwnHomes {
  readonly #mutex = new KeyedMutex();
  /** By the folder itself: the worlds of a replaced folder still have the old one. */
  readonly #worlds = new Map<string, Map<Pinning, readonly HomePlace[]>>();

  /** Makes a world of a home with `make`. Throws `WorldUnavailable`, also after ending a world that cannot pin. */
  join<Made extends Pinning>(
    home: OwnHome,
    places: readonly HomePlace[],
    make: () => Promise<Made>,
  ): Promise<Made> {
    return this.#mutex.run(home.identity, async () => {
      prepareHomePlaces(home, places);
      const others = this.#worlds.get(home.identity) ?? new Map<Pinning, readonly HomePlace[]>();
      this.#worlds.set(home.identity, others);
      await Promise.all([...others].map(([other, own]) => pin(other, pinsFor(home, places, own))));
      const world = await make();
      try {
        for (const theirs of others.values()) await pin(world, pinsFor(home, theirs, places));
      } catch (error) {
        await world.end("it could not pin its home");
        throw error;
      }
      // Another world's end may have removed the empty map meanwhile.
      this.#worlds.set(home.identity, others.set(world, places));
      void world.ended.then(() => this.#forget(home, world));
      return world;
    });
  }

  #forget({ identity }: OwnHome, world: Pinning): void {
    const others = this.#worlds.get(identity);
    others?.delete(world);
    if (others?.size === 0) this.#worlds.delete(identity);
  }
}

async function pin({ pins }: Pinning, folders: readonly string[]): Promise<void> {
  const errno = folders.length === 0 ? 0 : await pins.ask(folders);
  if (errno === 0) return;
  throw new WorldUnavailable(
    `Cannot keep '${folders.join("', '")}' in place for all commands of this home: ${errnoName(errno)}`,
    "Another command of this home has removed or replaced a folder there meanwhile; run the command again",
  );
}

const PINNING = {
  frame: FRAME.PIN,
  patienceMs: PATIENCE_MS,
  read: errnoOf,
  gone: 0,
};

/** Asks one world's init to pin folders (world/native/run/pins.h). Answers 0 or an errno; 0 too for a world that has ended. */
export class Pins extends FolderQuestions<number> {
  /** `giveUp` ends the world. */
  constructor(send: (frame: Buffer) => void, giveUp: () => void) {
    super(PINNING, send, giveUp);
  }
}

function errnoOf(payload: Buffer): number {
  const errno = new Map(decodeFields(payload)).get(TAG.ERRNO);
  return errno === undefined ? 0 : decodeNumber(errno);
}
