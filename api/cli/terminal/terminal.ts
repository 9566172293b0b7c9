import type { BackendChoice, DoctorOrder, HostCheck, WorldBackend } from "../../../broker/broker.ts";
import type { Home } from "../../../broker/settings/home.ts";
import type { Installation } from "../../serve/installation.ts";

/** What came of names that were to be linked, or unlinked. */
export type ShimChange = {
  readonly done: readonly string[];
  readonly same: readonly string[];
  readonly refused: readonly { readonly name: string; readonly why: string }[];
};

export type ShimLinks = {
  readonly path: string;
  install(names: readonly string[]): ShimChange;
  remove(names: readonly string[]): ShimChange;
  status(
    names: readonly string[],
  ): readonly { readonly name: string; readonly state: string; readonly real: string | null }[];
};

/** What a CLI command may use of the process it runs in; the entry point fills it in. */
export type Terminal = {
  readonly home: Home;
  readonly installation: Installation;
  /** Throws {@link Complaint} for a SUBSTRATE_BACKEND that there is not. */
  readonly createBackend: (onChoice: (choice: BackendChoice) => void) => Promise<WorldBackend>;
  /** What the backend wants of this host, ready to be tried. */
  readonly createChecks: (order: DoctorOrder) => Promise<readonly HostCheck[]>;
  /** The folder of the shims, for whoever has this PATH. */
  readonly shims: () => Promise<ShimLinks>;
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
  printLine(terminal, harmlessJson(JSON.stringify(document, null, 2)));
}

/** What a terminal would obey stands in it as JSON's own escapes: the document is the same to a program. */
export function harmlessJson(json: string): string {
  return json.replace(UNSEEN, (character) => (character === "\n" ? "\n" : escapedUnits(character)));
}

function escapedUnits(character: string): string {
  const units = Array.from({ length: character.length }, (_, at) => character.charCodeAt(at));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
}

export function printLine(terminal: Terminal, line = ""): void {
  terminal.out.write(`${line}\n`);
}

/**
 * What is not seen, or moves what is seen: controls, marks of direction and format, every space and line end but the
 * usual ones, lone surrogates, and letters that are drawn as nothing.
 */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\u034f\u115f\u1160\u2800\u3164\uffa0]|(?! )\p{Zs}/gu;

/** Text that came from a command or a policy, with what a terminal would obey made visible. */
export function harmless(text: string): string {
  return text.replace(UNSEEN, (character) => (character === "\n" ? "\n" : visible(character)));
}

function visible(character: string): string {
  const hex = (character.codePointAt(0) ?? 0).toString(16);
  return hex.length > 2 ? `\\u{${hex}}` : `\\x${hex.padStart(2, "0")}`;
}

/** The same where a line of its own would say something else: a path and a program's words may hold line breaks. */
export function harmlessLine(text: string): string {
  return harmless(text).replaceAll("\n", "\\x0a");
}

/** A line of at most `most` characters: of a longer text its beginning and its end, with how much is between. */
export function harmlessExcerpt(text: string, most: number): string {
  if (text.length <= most) return harmlessLine(text);
  const part = Math.floor(most / 2);
  const left = text.length - 2 * part;
  return `${harmlessLine(text.slice(0, part))} … [${left} characters are not shown] … ${harmlessLine(text.slice(-part))}`;
}
