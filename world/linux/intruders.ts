import type { ExecRequest, WorldViolation } from "../backend.ts";
import { takeOut } from "./quarantine.ts";

/** Bits of a DENY rule, as init sends them (world/init/rules.h). */
const DENY_READ = 1;

/**
 * Denied names that turned up while commands ran. Each is taken out at once; the end of a command is not told before
 * that is done.
 */
export class Intruders {
  readonly #quarantine: string;
  #busy: Promise<void> | undefined;
  #unclaimed: WorldViolation[] = [];

  constructor(quarantine: string) {
    this.#quarantine = quarantine;
  }

  /** `tell` belongs to the command that began last: which one made the name, nobody can say. */
  take(path: string, denies: number, tell: ExecRequest["onViolation"] | undefined): void {
    const list = (denies & DENY_READ) === 0 ? "fs.deny_write" : "fs.deny_read";
    const taken = this.after(async () => {
      const violation = await this.#takeOut(path, list);
      if (violation === undefined) return;
      if (tell === undefined) this.#unclaimed.push(violation);
      else tell(violation);
    });
    const busy = taken.finally(() => {
      if (this.#busy === busy) this.#busy = undefined;
    });
    this.#busy = busy;
  }

  /** What nobody was told of yet, for the command that begins now. */
  claim(tell: ExecRequest["onViolation"]): void {
    if (this.#unclaimed.length === 0) return;
    for (const violation of this.#unclaimed.splice(0)) tell(violation);
  }

  get busy(): boolean {
    return this.#busy !== undefined;
  }

  /** Acts when everything so far is taken out. */
  async after(act: () => Promise<void> | void): Promise<void> {
    await this.#busy;
    await act();
  }

  async #takeOut(path: string, list: string): Promise<WorldViolation | undefined> {
    const made = `'${path}' was made although ${list} covers it`;
    try {
      const place = await takeOut(path, this.#quarantine);
      return {
        kind: "denied_name",
        subject: path,
        message: `${made}: it was taken out, and lies in '${place}'`,
      };
    } catch (error) {
      // It is gone already, ignoring: whoever made it took it away again.
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      const why = error instanceof Error ? error.message : String(error);
      return { kind: "denied_name", subject: path, message: `${made}, and could not be taken out: ${why}` };
    }
  }
}
