/** Ctrl-R of bash, which Node's line editor lacks: finds an earlier line by a part of it. */
import type { Interface } from "node:readline";

type Key = { readonly name?: string; readonly ctrl?: boolean; readonly meta?: boolean };
type OnKey = (text: string | undefined, key: Key) => void;

/** A search under way. */
type Search = {
  query: string;
  /** Index of the line that is shown; -1 before the first is found. */
  at: number;
  /** The editor's own listeners: during a search its keys are not theirs. */
  readonly others: readonly OnKey[];
  readonly line: string;
  readonly cursor: number;
};

/**
 * Lets Ctrl-R search until the editor closes, with bash's words and keys: again for the next older line, Enter runs it, Ctrl-G and Ctrl-C
 * give the line back as it was, and any other key goes on editing the found one.
 * @param newestFirst earlier lines
 */
export function searchHistory(
  stdin: NodeJS.ReadableStream,
  typing: Interface,
  newestFirst: readonly string[],
): void {
  const prompt = typing.getPrompt();
  let search: Search | undefined;

  const show = (line: string, cursor: number, words = prompt): void => {
    Object.assign(typing, { line, cursor });
    typing.setPrompt(words);
    typing.prompt(true);
  };
  const leave = (line: string, cursor: number): void => {
    for (const other of search?.others ?? []) stdin.on("keypress", other);
    search = undefined;
    show(line, cursor);
  };
  const find = (one: Search, from: number): void => {
    const found = newestFirst.findIndex((line, at) => at >= from && line.includes(one.query));
    const hasFailed = found < 0 && one.query !== "";
    if (found >= 0 && one.query !== "") one.at = found;
    const line = newestFirst[one.at] ?? one.line;
    const place = Math.max(0, line.indexOf(one.query));
    show(line, place, `(${hasFailed ? "failed " : ""}reverse-i-search)\`${one.query}': `);
  };
  const onKey: OnKey = (text, key) => {
    if (search === undefined) {
      if (key.ctrl !== true || key.name !== "r") return;
      const others = (stdin.listeners("keypress") as OnKey[]).filter((other) => other !== onKey);
      for (const other of others) stdin.off("keypress", other);
      search = { query: "", at: -1, others, line: typing.line, cursor: typing.cursor };
      return find(search, 0);
    }
    if (key.ctrl === true && key.name === "r") return find(search, search.at + 1);
    if (key.name === "backspace") {
      search.query = [...search.query].slice(0, -1).join("");
      return find(search, 0);
    }
    if (key.ctrl !== true && key.meta !== true && text !== undefined && isPrintable(text)) {
      search.query += text;
      return find(search, Math.max(0, search.at));
    }
    const isGivenUp = key.ctrl === true && (key.name === "g" || key.name === "c");
    leave(isGivenUp ? search.line : typing.line, isGivenUp ? search.cursor : typing.cursor);
    if (key.name !== "escape" && !(isGivenUp && key.name === "g")) stdin.emit("keypress", text, key);
  };
  stdin.on("keypress", onKey);
  // The listeners of a search under way are not put back: the editor has ended too.
  typing.once("close", () => stdin.off("keypress", onKey));
}

function isPrintable(text: string): boolean {
  return text !== "" && !/\p{Cc}/u.test(text);
}
