/** The operator's settings: all optional, reloaded when the file changes. If a reload fails, the last good settings stay in force. */
import { readFileSync, statSync } from "node:fs";
import { type Document, isMap, isNode, isScalar } from "yaml";
import type { ConfigDocument } from "../../schemas/generated/types.ts";
import { validateConfigDocument } from "../../schemas/generated/validators/config.js";
import { describeErrors } from "../../schemas/validation-errors.ts";
import { fileIdentity } from "../model/host-paths.ts";
import { yamlDocument, yamlWords } from "../../schemas/yaml-document.ts";

export type ConfigProblem = { readonly text: string };

const MISSING = "missing";

/** The value of a file with only blanks and comments; compared by identity. */
const NOTHING: ConfigDocument = {};

/** The settings do not load at the broker's start: no last good settings can stay in force. */
export class ConfigRefused extends Error {
  override readonly name = "ConfigRefused";
}

/** The settings in a file; a missing file means no settings. */
export class Config {
  readonly #path: string;
  readonly #onChange: (problems: readonly ConfigProblem[]) => void;
  #identity = "";
  #current: ConfigDocument = {};
  #problems: readonly ConfigProblem[] = [];
  /** The file was checked in this turn of the event loop: a call asks for settings several times, and must see a single version. */
  #justLooked = false;

  /**
   * Reads the file for the first time. Throws {@link ConfigRefused} if the file does not load: defaults would lift every limit
   * set by the operator. `onChange` is called after each later reading.
   */
  constructor(path: string, onChange: (problems: readonly ConfigProblem[]) => void) {
    this.#path = path;
    this.#onChange = () => {};
    const problems = this.#read(this.#look());
    if (problems.length > 0) {
      throw new ConfigRefused(
        `The settings do not load:\n${problems.map(({ text }) => `  ${text}`).join("\n")}`,
      );
    }
    this.#onChange = onChange;
  }

  /** Returns the current settings; the last good settings while the file does not load. */
  current(): ConfigDocument {
    if (this.#justLooked) return this.#current;
    this.#justLooked = true;
    queueMicrotask(() => {
      this.#justLooked = false;
    });
    const identity = this.#look();
    if (identity !== this.#identity) this.#onChange(this.#read(identity));
    return this.#current;
  }

  /** Returns the problems of the file's last reading; the last good settings stay in force. */
  problems(): readonly ConfigProblem[] {
    return this.#problems;
  }

  /** Reads the file again, whatever its times; returns the problems. */
  reload(): readonly ConfigProblem[] {
    const identity = this.#look();
    if (identity === MISSING && this.#identity === MISSING) return [];
    const problems = this.#read(identity);
    this.#onChange(problems);
    return problems;
  }

  #look(): string {
    const stat = statSync(this.#path, { throwIfNoEntry: false, bigint: true });
    return stat === undefined ? MISSING : fileIdentity(stat);
  }

  #read(identity: string): readonly ConfigProblem[] {
    this.#problems = this.#problemsOf(identity);
    return this.#problems;
  }

  #problemsOf(identity: string): readonly ConfigProblem[] {
    const known = this.#identity;
    this.#identity = identity;
    // A removed file without settings changes nothing, so nobody is told.
    if (identity === MISSING && known !== "" && Object.keys(this.#current).length > 0) {
      return [
        { text: `${this.#path}: the file is gone; its settings stay in force until the broker restarts` },
      ];
    }
    const result = identity === MISSING ? { ok: {} } : readConfig(this.#path);
    if ("problems" in result) return result.problems;
    // An editor that writes in place empties the file first: reading the empty file would lift every limit for a moment.
    if (result.ok === NOTHING && known !== "" && known !== MISSING) {
      return [
        {
          text: `${this.#path}: the file is empty; its last settings stay in force. Write {} to use the defaults`,
        },
      ];
    }
    this.#current = result.ok;
    return [];
  }
}

function readConfig(path: string): ReturnType<typeof parseConfig> {
  try {
    return parseConfig(readFileSync(path, "utf8"), path);
  } catch (error) {
    return { problems: [{ text: `${path}: ${error instanceof Error ? error.message : String(error)}` }] };
  }
}

/** Parses settings. `file` only appears in problems. */
export function parseConfig(
  text: string,
  file: string,
): { readonly ok: ConfigDocument } | { readonly problems: readonly ConfigProblem[] } {
  const { document, lines } = yamlDocument(text);
  const place = (offset: number): string => {
    const { line, col } = lines.linePos(offset);
    return `${file}:${line}:${col}`;
  };
  if (document.errors.length > 0) {
    return {
      problems: document.errors.map((error) => ({
        text: `${place(error.pos[0])}: ${yamlWords(error)}`,
      })),
    };
  }
  if (document.contents === null) return { ok: NOTHING };
  const value: unknown = document.toJS({ maxAliasCount: 100 }) ?? {};
  if (validateConfigDocument(value)) return { ok: value };
  const problems = describeErrors(value, validateConfigDocument.errors ?? []).map(({ pointer, message }) => ({
    text: `${place(offsetOf(document, pointer))}: ${message}`,
  }));
  return { problems };
}

/** Returns the key's offset, if any: the value may begin lines below. */
function offsetOf(document: Document.Parsed, pointer: readonly (string | number)[]): number {
  const parent: unknown = document.getIn(pointer.slice(0, -1), true);
  const pair = isMap(parent)
    ? parent.items.find(({ key }) => isScalar(key) && String(key.value) === String(pointer.at(-1)))
    : undefined;
  const node: unknown = pair?.key ?? document.getIn(pointer, true);
  return isNode(node) ? (node.range?.[0] ?? 0) : 0;
}
