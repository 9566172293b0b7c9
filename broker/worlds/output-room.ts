/**
 * A common bound on the output of all commands in the broker's memory. A reply holds its output several times (bytes, base64,
 * JSON, socket buffer): without a bound, 48 commands with 16 MiB each took 6 GB.
 */

/** Bytes promised at once; a single command may be promised more. */
export const OUTPUT_ROOM = 128 * 1024 * 1024;

/** Bytes promised before a command's output is known to be long: a mebibyte per stream, the default of a call. */
const FIRST = 2 * 1024 * 1024;

/** The share of one command. */
export type OutputShare = {
  /**
   * Calls `go` once there is room for the command's whole share: at once, or after other replies are sent. The share is taken as
   * a whole, so that no two commands wait for each other.
   *
   * @param kept bytes that the command keeps, and may keep before asking again. Absent: the whole promised share.
   */
  readonly whenRoom: (go: () => void, kept?: number) => void;
  /** Takes the share even without room: the command is being ended, and its remaining output must be drained. */
  readonly force: () => void;
  /** Gives the share back after sending, or instead of, a reply. May be called again. */
  readonly release: () => void;
};

/**
 * Two pools. `substrate exec` requests a large bound in case the output is long, and may run for hours: holding all of it, a few
 * such commands would leave no room for commands with a page of output. No command holds the second pool while waiting for the
 * first.
 */
export class OutputRooms {
  readonly #first = new OutputRoom();
  readonly #rest = new OutputRoom();

  /** `bytes`: the most that the command may keep. */
  share(bytes: number): OutputShare {
    const first = this.#first.share(Math.min(bytes, FIRST));
    if (bytes <= FIRST) return first;
    const rest = this.#rest.share(bytes - FIRST);
    return {
      whenRoom: (go, kept = bytes) =>
        first.whenRoom(() => {
          if (kept > FIRST) rest.whenRoom(go, kept);
          else go();
        }, kept),
      force: () => {
        first.force();
        rest.force();
      },
      release: () => {
        first.release();
        rest.release();
      },
    };
  }
}

export class OutputRoom {
  readonly #bound: number;
  readonly #waiting = new Map<object, () => void>();
  #taken = 0;

  constructor(bound: number = OUTPUT_ROOM) {
    this.#bound = bound;
  }

  /** Bytes currently promised. */
  get taken(): number {
    return this.#taken;
  }

  /** `bytes`: the most that the command may keep. Takes no room before the first request. */
  share(bytes: number): OutputShare {
    const key = {};
    const waiting: (() => void)[] = [];
    let state: "unasked" | "waiting" | "taken" | "released" = "unasked";
    const take = (): void => {
      this.#waiting.delete(key);
      state = "taken";
      this.#taken += bytes;
      for (const go of waiting.splice(0)) go();
    };
    return {
      whenRoom: (go) => {
        if (state === "taken" || state === "released") return go();
        waiting.push(go);
        if (state === "waiting") return;
        state = "waiting";
        this.#waiting.set(key, () => {
          if (this.#taken === 0 || this.#taken + bytes <= this.#bound) take();
        });
        this.#serve();
      },
      force: () => {
        if (state === "unasked" || state === "waiting") take();
      },
      release: () => {
        this.#waiting.delete(key);
        if (state === "taken") this.#taken -= bytes;
        state = "released";
        for (const go of waiting.splice(0)) go();
        this.#serve();
      },
    };
  }

  /** Serves in order of request, so that smaller requests cannot starve a large request. */
  #serve(): void {
    for (const [key, tryIt] of this.#waiting) {
      tryIt();
      if (this.#waiting.has(key)) return;
    }
  }
}
