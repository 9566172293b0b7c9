import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { PolicyDocument } from "../../schemas/generated/types.ts";
import type { SpanRecord } from "../spans/trace.ts";

/** The broker's state about shims, and its file for them. */
export class Shims {
  readonly runs = new ShimRuns();
  readonly offline: OfflineFile;

  /** @param folder the shims' folder, first on PATH. */
  constructor(folder: string, onFault: (what: string, error: unknown) => void) {
    this.offline = new OfflineFile(folder, onFault);
  }
}

/** The answer for shims while no broker runs, read from a file. */

type Offline = "deny" | "allow";

/** Returns the strictest answer of all loaded policies, since a shim cannot know its own policy. No policies means `deny`. */
function offlineRule(documents: readonly PolicyDocument[]): Offline {
  const allows = ({ shims, mode = "observe" }: PolicyDocument): boolean =>
    (shims?.offline ?? (mode === "observe" ? "allow" : "deny")) === "allow";
  return documents.length > 0 && documents.every(allows) ? "allow" : "deny";
}

/** The file with the offline answer, read by `shim/main.c`. */
class OfflineFile {
  readonly #folder: string;
  readonly #onFault: (what: string, error: unknown) => void;
  #written: Offline | undefined;

  constructor(folder: string, onFault: (what: string, error: unknown) => void) {
    this.#folder = folder;
    this.#onFault = onFault;
  }

  /** Writes a changed answer atomically. */
  follow(documents: readonly PolicyDocument[]): void {
    const rule = offlineRule(documents);
    if (rule === this.#written) return;
    const draft = join(this.#folder, ".offline.tmp");
    try {
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
      writeFileSync(draft, `${rule}\n`);
      renameSync(draft, join(this.#folder, ".offline"));
      this.#written = rule;
    } catch (error) {
      this.#onFault(`Cannot tell shims to '${rule}' commands while no broker runs`, error);
    }
  }
}

/** A program behind a shim, running until reported otherwise. An end never reported is recorded as lost by the next broker. */
type ShimRun = {
  readonly started: SpanRecord;
  /** Milliseconds since the start. */
  readonly duration: () => number;
};

/** Bound on open runs, at a kilobyte each; beyond, the oldest run can no longer be closed by a report. */
const MOST_OPEN = 10_000;

class ShimRuns {
  readonly #open = new Map<string, ShimRun>();

  began(started: SpanRecord): void {
    const [oldest] = this.#open.size < MOST_OPEN ? [] : this.#open.keys();
    if (oldest !== undefined) this.#open.delete(oldest);
    const since = performance.now();
    const duration = (): number => Math.round((performance.now() - since) * 1000) / 1000;
    this.#open.set(started.span_id, { started, duration });
  }

  /** Takes a run once, and only for its own agent. */
  take(span: string, agent: string): ShimRun | undefined {
    const run = this.#open.get(span);
    if (run?.started.agent_id !== agent) return undefined;
    this.#open.delete(span);
    return run;
  }
}
