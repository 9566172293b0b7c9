import type { ExecRequest, WorldViolation } from "../model/world.ts";
import { takeOut } from "./quarantine.ts";

/** Bits of a DENY rule (world/native/deny/rules.h). */
const DENY_READ = 1;

type Tell = ExecRequest["onViolation"];

/** A name still in place: its maker may interfere as long as the maker lives. */
type Resisting = {
  readonly path: Buffer;
  readonly list: string;
  readonly tell: Tell | undefined;
  readonly told: boolean;
};

/**
 * Removes denied names that appear while commands run. Each name is taken out when init reports it, before any later frame, and
 * so before the end of the command that made it.
 */
export class Intruders {
  readonly #quarantine: string;
  #unclaimed: WorldViolation[] = [];
  #resisting: Resisting[] = [];

  constructor(quarantine: string) {
    this.#quarantine = quarantine;
  }

  /** Takes out a name. `tell` belongs to the newest command: the true maker is unknown. */
  take(path: Buffer, denies: number, tell: Tell | undefined): void {
    const list = (denies & DENY_READ) === 0 ? "fs.deny_write" : "fs.deny_read";
    this.#resisting.push(...this.#try({ path, list, tell, told: false }, false));
  }

  /** Retries names that resisted: a command has ended, and its interference with it. */
  settle(): void {
    if (this.#resisting.length === 0) return;
    this.#resisting = this.#resisting.flatMap((each) => this.#try(each, true));
  }

  /** Passes unreported violations to the command about to begin. */
  claim(tell: Tell): void {
    if (this.#unclaimed.length === 0) return;
    for (const violation of this.#unclaimed.splice(0)) tell(violation);
  }

  /** Tries to take out a name; returns the name again on failure. */
  #try(name: Resisting, last: boolean): readonly Resisting[] {
    const subject = name.path.toString("utf8");
    const made = `'${subject}' was made although ${name.list} covers it`;
    try {
      const place = takeOut(name.path, this.#quarantine).toString("utf8");
      this.#tell(name, subject, `${made}: it was moved to '${place}'`);
      return [];
    } catch (error) {
      // Already gone, ignoring: its maker removed the name.
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
      const why = error instanceof Error ? error.message : String(error);
      if (last && !name.told) this.#tell(name, subject, `${made}, and could not be moved out: ${why}`);
      return [{ ...name, told: name.told || last }];
    }
  }

  #tell(name: Resisting, subject: string, message: string): void {
    const violation: WorldViolation = { kind: "denied_name", subject, message };
    if (name.tell === undefined) this.#unclaimed.push(violation);
    else name.tell(violation);
  }
}
