/**
 * One bound for the outputs of all commands that the broker has in memory. A reply holds its output several times on its way
 * (as bytes, in base64, in JSON, in the socket): without a bound 48 commands with 16 MiB each took 6 GB.
 */

/** Bytes that callers may be promised at once; a command that is alone may be promised more. */
export const OUTPUT_ROOM = 128 * 1024 * 1024;

/** What a command is promised before its output is known to be long: a mebibyte of each stream, the default of a call. */
const FIRST = 2 * 1024 * 1024;

/** One command's part. */
export type OutputShare = {
  /**
   * Calls `go` once there is room for all that this command may keep: at once, or when the replies of others are sent. All of
   * it is taken together, so that no two commands wait for each other.
   *
   * @param kept how much it keeps, and may keep before it asks again. Absent: all that it was promised.
   */
  readonly whenRoom: (go: () => void, kept?: number) => void;
  /** Takes the room whether it is there or not: the command is being ended, and what is left of its output must be drained. */
  readonly force: () => void;
  /** The reply is sent, or there will be none. May be called again. */
  readonly release: () => void;
};

/**
 * Room in two parts. `substrate exec` asks for much in case the output is long, and may run for hours: if it held all of that, a few
 * of them would leave no room to commands that write a page. Nobody holds the second part and waits for the first.
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

  /** Bytes that are promised now. */
  get taken(): number {
    return this.#taken;
  }

  /** `bytes`: the most that the command may keep. Nothing is taken before it is asked for. */
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

  /** In the order in which they asked: one that wants much is not passed by others for ever. */
  #serve(): void {
    for (const [key, tryIt] of this.#waiting) {
      tryIt();
      if (this.#waiting.has(key)) return;
    }
  }
}
