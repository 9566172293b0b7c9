import type { DoctorOrder, HostCheck, WorldBackend } from "../../../broker/broker.ts";
import type { Home } from "../../../broker/settings/home.ts";
import type { ServedAgent } from "../../serve/agent.ts";
import type { BackendGround } from "../../serve/process.ts";
import type { Installation } from "../../serve/installation.ts";

/** Result of linking or unlinking names. */
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

/** Surroundings of a CLI command: everything from the process that commands may use, filled in by the entry point. */
export type Terminal = {
  readonly home: Home;
  /** Layout of a user's home at a folder. */
  readonly homeAt: (folder: string, uid: number) => Home;
  readonly installation: Installation;
  /** Throws {@link Complaint} for an unknown SUBSTRATE_BACKEND. */
  readonly createBackend: (ground: BackendGround) => Promise<WorldBackend>;
  /** Creates a world agent, which does not listen yet. */
  readonly createAgent: () => Promise<ServedAgent>;
  /** Creates the backend's checks of the host. */
  readonly createChecks: (order: DoctorOrder) => Promise<readonly HostCheck[]>;
  /** Opens the shims folder, judged by the caller's PATH. */
  readonly shims: () => Promise<ShimLinks>;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly uid: number;
  readonly cwd: string;
  readonly out: NodeJS.WriteStream;
  readonly err: NodeJS.WriteStream;
  readonly stdin: NodeJS.ReadStream;
};

/** An error for the person at the terminal: shown without a stack trace, exit code 125. */
export class Complaint extends Error {
  override readonly name = "Complaint";
}

/** Exit code: `substrate` itself failed, not the command. */
export const EXIT_SUBSTRATE = 125;

/** Exit code: the policy denied the command. */
export const EXIT_DENIED = 126;

export function printJson(terminal: Terminal, document: unknown): void {
  printLine(terminal, harmlessJson(JSON.stringify(document, null, 2)));
}

/** Escapes control and invisible characters as JSON escapes: harmless on a terminal, the same document for programs. */
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
 * Characters that are invisible or move or cover visible text: controls, direction and format marks, unassigned and private ones,
 * spaces and line ends except the usual, what is drawn as nothing (variation selectors among them) or as a blank, enclosing marks, and
 * marks stacked three and more on a letter. `shim/client/unseen.h` holds the same as a table.
 */
const UNSEEN =
  /[\p{C}\p{Zl}\p{Zp}\p{Me}\p{Default_Ignorable_Code_Point}\u2800\u{13441}\u{13442}\u{1d159}]|\u{16fe4}|(?! )\p{Zs}|(?<=\p{M}{2})\p{M}/gu;

/** Makes terminal sequences and invisible characters visible, in text of commands and policies. */
export function harmless(text: string): string {
  return text.replace(UNSEEN, (character) => (character === "\n" ? "\n" : visible(character)));
}

function visible(character: string): string {
  const hex = (character.codePointAt(0) ?? 0).toString(16);
  return hex.length > 2 ? `\\u{${hex}}` : `\\x${hex.padStart(2, "0")}`;
}

/** Like {@link harmless}, with line breaks escaped too: a path or an argument could otherwise forge a line of output. */
export function harmlessLine(text: string): string {
  return harmless(text).replaceAll("\n", "\\x0a");
}

/** Shortens a line to `most` characters: the beginning, the number of omitted characters, the end. */
export function harmlessExcerpt(text: string, most: number): string {
  if (text.length <= most) return harmlessLine(text);
  const part = Math.floor(most / 2);
  const left = text.length - 2 * part;
  return `${harmlessLine(text.slice(0, part))} … [${left} characters are not shown] … ${harmlessLine(text.slice(-part))}`;
}
