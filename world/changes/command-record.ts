import type { FsDiff } from "../../schemas/generated/types.ts";
import type { WorldSpec } from "../model/world.ts";
import { directDiff, unknownDiff } from "./direct-diff.ts";

/** What init says of its telling when a command ends. */
export type RecordEnd = {
  /** Somebody listened. */
  readonly recorded: boolean;
  /** Calls whose names could not be read. */
  readonly unread: number;
  /** Names that were more than it tells. */
  readonly untold: number;
};

/** Bytes that are kept of one command, whatever it touches: 200,000 names of some 300 letters. */
const MAX_BYTES = 64 * 1024 * 1024;

/** What was told of one command while it ran; read when it has ended. */
export class CommandRecord {
  readonly #spec: Pick<WorldSpec, "access" | "project">;
  #payloads: Buffer[] = [];
  #bytes = 0;
  #end: RecordEnd | undefined;

  constructor(spec: Pick<WorldSpec, "access" | "project">) {
    this.#spec = spec;
  }

  /** The payload of one TOUCHED. */
  take(payload: Buffer): void {
    if (this.#end !== undefined) return;
    this.#bytes += payload.length;
    if (this.#bytes <= MAX_BYTES) this.#payloads.push(payload);
  }

  end(end: RecordEnd): void {
    this.#end ??= end;
  }

  /** What could not be seen, or not in time, stands in `summary`. */
  async diff(signal: AbortSignal): Promise<FsDiff> {
    if (this.#spec.access.kind !== "direct")
      return unknownDiff("it wrote to an overlay, whose layer is listed instead");
    if (this.#end?.recorded === false)
      return unknownDiff(
        "nobody is told of a command's writes here, because the kernel cannot or another sandbox listens to them",
      );
    const payloads = this.#payloads;
    this.#payloads = [];
    try {
      const gaps = [...gapsOf(this.#end), ...(this.#bytes > MAX_BYTES ? [TOO_LONG] : [])];
      return await directDiff(this.#spec.project, { payloads, gaps }, signal);
    } catch (error) {
      if (!signal.aborted) throw error;
      return unknownDiff("looking at what it wrote took too long, and was given up");
    }
  }
}

const TOO_LONG = `the names that it touched are longer than ${MAX_BYTES} bytes together, and the last are missing`;

function gapsOf(end: RecordEnd | undefined): readonly string[] {
  if (end === undefined) return ["its world was lost before all its writes were told"];
  return [
    ...(end.unread > 0 ? [`${end.unread} calls that change files had names that could not be read`] : []),
    ...(end.untold > 0 ? [`${end.untold} calls touched more names than are told of one command`] : []),
  ];
}
