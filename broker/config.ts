/** The operator's settings: every one optional, read again when the file changes, the last good ones kept. */
import { readFileSync, statSync } from "node:fs";
import { LineCounter, parseDocument } from "yaml";
import type { ConfigDocument } from "../schemas/generated/types.ts";
import { validateConfigDocument } from "../schemas/generated/validators.js";
import { describeErrors } from "../schemas/validation-errors.ts";

export type ConfigProblem = { readonly text: string };

/** The settings in a file; absent file, empty settings. Problems in words with line and column, never a throw. */
export class Config {
  readonly #path: string;
  readonly #onChange: (problems: readonly ConfigProblem[]) => void;
  #identity = "";
  #current: ConfigDocument = {};

  constructor(path: string, onChange: (problems: readonly ConfigProblem[]) => void) {
    this.#path = path;
    this.#onChange = onChange;
  }

  /** The settings as they are now. */
  current(): ConfigDocument {
    const stat = statSync(this.#path, { throwIfNoEntry: false, bigint: true });
    const identity =
      stat === undefined ? "missing" : `${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeNs}:${stat.ctimeNs}`;
    if (identity === this.#identity) return this.#current;
    this.#identity = identity;
    const result =
      stat === undefined ? { ok: {} } : parseConfig(readFileSync(this.#path, "utf8"), this.#path);
    if ("ok" in result) this.#current = result.ok;
    this.#onChange("ok" in result ? [] : result.problems);
    return this.#current;
  }
}

/** Reads settings from text. `file` is for the problems only. */
export function parseConfig(
  text: string,
  file: string,
): { readonly ok: ConfigDocument } | { readonly problems: readonly ConfigProblem[] } {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, uniqueKeys: true, strict: true });
  const place = (offset: number): string => {
    const { line, col } = lines.linePos(offset);
    return `${file}:${line}:${col}`;
  };
  if (document.errors.length > 0) {
    return {
      problems: document.errors.map((error) => ({
        text: `${place(error.pos[0])}: ${error.message.split("\n")[0]}`,
      })),
    };
  }
  const value: unknown = document.toJS({ maxAliasCount: 100 }) ?? {};
  if (validateConfigDocument(value)) return { ok: value };
  const problems = describeErrors(value, validateConfigDocument.errors ?? []).map(({ pointer, message }) => {
    const node = document.getIn(pointer, true) as { range?: [number, number, number] } | undefined;
    return { text: `${place(node?.range?.[0] ?? 0)}: ${message}` };
  });
  return { problems };
}
