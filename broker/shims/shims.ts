import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { PolicyDocument } from "../../schemas/generated/types.ts";
import type { SpanRecord } from "../spans/trace.ts";

/** What the broker knows of shims, and tells them. */
export class Shims {
  readonly runs = new ShimRuns();
  readonly offline: OfflineFile;

  /** @param folder the one that is first on PATH. */
  constructor(folder: string, onFault: (what: string, error: unknown) => void) {
    this.offline = new OfflineFile(folder, onFault);
  }
}

/** What shims do while no broker runs: they can ask nobody, and read one word. */

type Offline = "deny" | "allow";

/** The strictest of the policies that were read: a shim cannot tell which of them would hold for it. None is a no. */
function offlineRule(documents: readonly PolicyDocument[]): Offline {
  const allows = ({ shims, mode = "observe" }: PolicyDocument): boolean =>
    (shims?.offline ?? (mode === "observe" ? "allow" : "deny")) === "allow";
  return documents.length > 0 && documents.every(allows) ? "allow" : "deny";
}

/** The file that shims read it from (`shim/main.c`). */
class OfflineFile {
  readonly #folder: string;
  readonly #onFault: (what: string, error: unknown) => void;
  #written: Offline | undefined;

  constructor(folder: string, onFault: (what: string, error: unknown) => void) {
    this.#folder = folder;
    this.#onFault = onFault;
  }

  /** Writes it when it is another one now. A reader sees one word or the other. */
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
      this.#onFault(`Shims are not told to '${rule}' while no broker runs`, error);
    }
  }
}

/** Programs behind shims whose end was not reported. One that never is, is closed as lost by the next broker. */
type ShimRun = {
  readonly started: SpanRecord;
  /** Milliseconds since then. */
  readonly duration: () => number;
};

/** Beyond it the oldest can no longer be closed by a report: each is a kilobyte. */
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

  /** Once, and for the agent whose it is alone. */
  take(span: string, agent: string): ShimRun | undefined {
    const run = this.#open.get(span);
    if (run?.started.agent_id !== agent) return undefined;
    this.#open.delete(span);
    return run;
  }
}
