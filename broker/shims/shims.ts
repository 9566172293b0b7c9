import { OfflineFile } from "./offline.ts";
import { ShimRuns } from "./shim-runs.ts";

/** What the broker knows of shims, and tells them. */
export class Shims {
  readonly runs = new ShimRuns();
  readonly offline: OfflineFile;

  /** @param folder the one that is first on PATH. */
  constructor(folder: string, onFault: (what: string, error: unknown) => void) {
    this.offline = new OfflineFile(folder, onFault);
  }
}
