import type { BackendChoice, DoctorOrder, HostCheck, WorldBackend } from "../../broker/broker.ts";
import type { Home } from "../../broker/home.ts";
import type { Installation } from "../installation.ts";

/** What a CLI command may use of the process it runs in; the entry point fills it in. */
export type Terminal = {
  readonly home: Home;
  readonly installation: Installation;
  /** Throws {@link Complaint} for a SUBSTRATE_BACKEND that there is not. */
  readonly createBackend: (onChoice: (choice: BackendChoice) => void) => Promise<WorldBackend>;
  /** What the backend wants of this host, ready to be tried. */
  readonly createChecks: (order: DoctorOrder) => Promise<readonly HostCheck[]>;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly uid: number;
  readonly cwd: string;
  readonly out: NodeJS.WriteStream;
  readonly err: NodeJS.WriteStream;
  readonly stdin: NodeJS.ReadStream;
};

/** Something a person asked for cannot be done; shown without a stack trace, exit code 125. */
export class Complaint extends Error {
  override readonly name = "Complaint";
}

/** `substrate` itself failed; not the command that it ran. */
export const EXIT_SUBSTRATE = 125;

/** The policy denied the command. */
export const EXIT_DENIED = 126;

export function printJson(terminal: Terminal, document: unknown): void {
  terminal.out.write(`${JSON.stringify(document, null, 2)}\n`);
}

export function printLine(terminal: Terminal, line = ""): void {
  terminal.out.write(`${line}\n`);
}

/** Text that came from a command or a policy, with what a terminal would obey made visible. */
export function harmless(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}]/gu, (character) =>
    character === "\n" ? "\n" : `\\x${(character.codePointAt(0) ?? 0).toString(16).padStart(2, "0")}`,
  );
}

/** The same where a line of its own would say something else: a path and a program's words may hold line breaks. */
export function harmlessLine(text: string): string {
  return harmless(text).replaceAll("\n", "\\x0a");
}
