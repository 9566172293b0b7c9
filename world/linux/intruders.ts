import type { ExecRequest, WorldViolation } from "../model/world.ts";
import { takeOut } from "./quarantine.ts";

/** Bits of a DENY rule, as init sends them (world/native/deny/rules.h). */
const DENY_READ = 1;

type Tell = ExecRequest["onViolation"];

/** A name that could not be taken out yet: whoever made it may work against it as long as they live. */
type Resisting = {
  readonly path: Buffer;
  readonly list: string;
  readonly tell: Tell | undefined;
  readonly told: boolean;
};

/**
 * Denied names that turned up while commands ran. Each is taken out when init tells of it, before anything that init
 * tells later: so before the end of the command that made it.
 */
export class Intruders {
  readonly #quarantine: string;
  #unclaimed: WorldViolation[] = [];
  #resisting: Resisting[] = [];

  constructor(quarantine: string) {
    this.#quarantine = quarantine;
  }

  /** `tell` belongs to the command that began last: which one made the name, nobody can say. */
  take(path: Buffer, denies: number, tell: Tell | undefined): void {
    const list = (denies & DENY_READ) === 0 ? "fs.deny_write" : "fs.deny_read";
    this.#resisting.push(...this.#try({ path, list, tell, told: false }, false));
  }

  /** Tries again what could not be taken out: some command has ended, and what it did against it too. */
  settle(): void {
    if (this.#resisting.length === 0) return;
    this.#resisting = this.#resisting.flatMap((each) => this.#try(each, true));
  }

  /** What nobody was told of yet, for the command that begins now. */
  claim(tell: Tell): void {
    if (this.#unclaimed.length === 0) return;
    for (const violation of this.#unclaimed.splice(0)) tell(violation);
  }

  /** What is left to do. */
  #try(name: Resisting, last: boolean): readonly Resisting[] {
    const subject = name.path.toString("utf8");
    const made = `'${subject}' was made although ${name.list} covers it`;
    try {
      const place = takeOut(name.path, this.#quarantine).toString("utf8");
      this.#tell(name, subject, `${made}: it was taken out, and lies in '${place}'`);
      return [];
    } catch (error) {
      // It is gone already, ignoring: whoever made it took it away again.
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
      const why = error instanceof Error ? error.message : String(error);
      if (last && !name.told) this.#tell(name, subject, `${made}, and could not be taken out: ${why}`);
      return [{ ...name, told: name.told || last }];
    }
  }

  #tell(name: Resisting, subject: string, message: string): void {
    const violation: WorldViolation = { kind: "denied_name", subject, message };
    if (name.tell === undefined) this.#unclaimed.push(violation);
    else name.tell(violation);
  }
}
