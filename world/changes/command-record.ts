import type { FsDiff } from "../../schemas/generated/types.ts";
import type { WorldSpec } from "../model/world.ts";
import { directDiff, unknownDiff } from "./direct-diff.ts";

/** Init's summary of its recording, sent at the end of a command. */
export type RecordEnd = {
  /** Whether a listener recorded the command. */
  readonly recorded: boolean;
  /** Number of calls with unreadable names. */
  readonly unread: number;
  /** Number of names beyond the reporting limit. */
  readonly untold: number;
};

/** Bound of stored bytes per command: 200,000 names of some 300 letters. */
const MAX_BYTES = 64 * 1024 * 1024;

/** Collects the records of a running command, and reads them at its end. */
export class CommandRecord {
  readonly #spec: Pick<WorldSpec, "access" | "project">;
  #payloads: Buffer[] = [];
  #bytes = 0;
  #end: RecordEnd | undefined;

  constructor(spec: Pick<WorldSpec, "access" | "project">) {
    this.#spec = spec;
  }

  /** Takes the payload of a TOUCHED frame. */
  take(payload: Buffer): void {
    if (this.#end !== undefined) return;
    this.#bytes += payload.length;
    if (this.#bytes <= MAX_BYTES) this.#payloads.push(payload);
  }

  end(end: RecordEnd): void {
    this.#end ??= end;
  }

  /** Returns the changes; `summary` reports changes not seen, or not in time. */
  async diff(signal: AbortSignal): Promise<FsDiff> {
    if (this.#spec.access.kind !== "direct")
      return unknownDiff("the command wrote to an overlay, whose changes are listed instead");
    if (this.#end?.recorded === false)
      return unknownDiff(
        "the command's writes cannot be observed, because the kernel lacks seccomp notifications or another sandbox uses them",
      );
    const payloads = this.#payloads;
    this.#payloads = [];
    try {
      const gaps = [...gapsOf(this.#end), ...(this.#bytes > MAX_BYTES ? [TOO_LONG] : [])];
      return await directDiff(this.#spec.project, { payloads, gaps }, signal);
    } catch (error) {
      if (!signal.aborted) throw error;
      return unknownDiff("comparing the written files took too long, and was stopped");
    }
  }
}

const TOO_LONG = `the touched names have more than ${MAX_BYTES} bytes in all, and the last names are missing`;

function gapsOf(end: RecordEnd | undefined): readonly string[] {
  if (end === undefined) return ["the world was lost before all writes were reported"];
  return [
    ...(end.unread > 0 ? [`the names in ${end.unread} calls that change files could not be read`] : []),
    ...(end.untold > 0
      ? [`${end.untold} calls touched names beyond the limit that is reported for a command`]
      : []),
  ];
}
