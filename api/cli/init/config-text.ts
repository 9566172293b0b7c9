/** Names an agent in the text of config.yaml, and takes it out again. Comments and layout stay. */
import { isDeepStrictEqual } from "node:util";
import { type Document, isMap, isScalar, parseDocument, type Pair, type YAMLMap } from "yaml";
import { parseConfig } from "../../../broker/settings/config.ts";
import type { ConfigDocument } from "../../../schemas/generated/types.ts";
import { NotUnderstood } from "./not-understood.ts";

/** The policy that `text` assigns to an agent; undefined for an agent that it does not list. Throws {@link NotUnderstood}. */
export function policyInConfig(text: string, agent: string): string | undefined {
  const entry = settingsOf(text).agents?.[agent];
  if (entry === undefined) return undefined;
  return entry?.policy ?? "default";
}

/** Adds an agent that is not listed. */
export function withAgent(text: string, agent: string, policy: string): string {
  const settings = settingsOf(text);
  const expected = { ...settings, agents: { ...settings.agents, [agent]: { policy } } };
  return (
    verified(placed(text, agent, policy), expected) ??
    rewritten(text, expected, (document) => {
      document.setIn(["agents", agent], document.createNode({ policy }));
    })
  );
}

/** Removes an agent, and with the last one the list. */
export function withoutAgent(text: string, agent: string): string {
  const { agents, ...others } = settingsOf(text);
  const left = Object.entries(agents ?? {}).filter(([name]) => name !== agent);
  const expected = left.length === 0 ? others : { ...others, agents: Object.fromEntries(left) };
  return (
    verified(cut(text, agent), expected) ??
    rewritten(text, expected, (document) => {
      document.deleteIn(left.length === 0 ? ["agents"] : ["agents", agent]);
    })
  );
}

function settingsOf(text: string): ConfigDocument {
  const parsed = parseConfig(text, "config.yaml");
  if ("ok" in parsed) return parsed.ok;
  throw new NotUnderstood(parsed.problems[0]?.text ?? "it does not load");
}

function placed(text: string, agent: string, policy: string): string {
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  const entry = `${agent}: { policy: ${policy} }`;
  const { pair, items } = agentsPair(text);
  if (pair === undefined) {
    const isEnded = text === "" || text.endsWith("\n");
    return `${text}${isEnded ? "" : eol}agents:${eol}  ${entry}${isEnded ? eol : ""}`;
  }
  const last = items?.items.at(-1);
  const at = last === undefined ? -1 : endOf(last);
  if (last === undefined || items === undefined || at < 0) return text;
  if (items.flow === true) return `${text.slice(0, at)}, ${entry}${text.slice(at)}`;
  const indent = indentOf(text, startOf(last));
  const line = text.indexOf("\n", at);
  if (line < 0) return `${text}${eol}${indent}${entry}`;
  return `${text.slice(0, line + 1)}${indent}${entry}${eol}${text.slice(line + 1)}`;
}

function cut(text: string, agent: string): string {
  const { pair, items } = agentsPair(text);
  const index = items?.items.findIndex(({ key }) => isScalar(key) && key.value === agent) ?? -1;
  const item = items?.items[index];
  if (pair === undefined || items === undefined || item === undefined) return text;
  const whole = items.items.length === 1 ? pair : item;
  if (items.flow === true && whole === item) {
    const previous = items.items[index - 1];
    return previous === undefined
      ? text.slice(0, startOf(item)) + text.slice(startOf(items.items[1] ?? item))
      : text.slice(0, endOf(previous)) + text.slice(endOf(item));
  }
  const start = text.lastIndexOf("\n", startOf(whole)) + 1;
  const end = text.indexOf("\n", endOf(whole));
  return end < 0 ? text.slice(0, start).replace(/\r?\n$/, "") : text.slice(0, start) + text.slice(end + 1);
}

type Agents = { readonly pair: Pair | undefined; readonly items: YAMLMap | undefined };

function agentsPair(text: string): Agents {
  const { contents } = parseDocument(text);
  if (!isMap(contents)) return { pair: undefined, items: undefined };
  const pair = contents.items.find(({ key }) => isScalar(key) && key.value === "agents");
  return { pair, items: isMap(pair?.value) ? pair.value : undefined };
}

type Ranged = { readonly range?: readonly [number, number, number] | null } | null | undefined;

function startOf({ key }: Pair): number {
  return (key as Ranged)?.range?.[0] ?? -1;
}

/** Behind the last character of a pair's value: the range of a block includes the line's end. */
function endOf(pair: Pair): number {
  const value = pair.value;
  if (isMap(value) && value.flow !== true && value.items.length > 0)
    return Math.max(...value.items.map(endOf));
  return (value as Ranged)?.range?.[1] ?? -1;
}

function indentOf(text: string, offset: number): string {
  return /^[ \t]*/.exec(text.slice(text.lastIndexOf("\n", offset) + 1))?.[0] ?? "";
}

function verified(edited: string, expected: object): string | undefined {
  const parsed = parseConfig(edited, "config.yaml");
  if ("problems" in parsed) return undefined;
  return isDeepStrictEqual(parsed.ok, expected) ? edited : undefined;
}

/** For a layout that a line does not fit in: the document keeps its comments, but may be written with other spacing. */
function rewritten(text: string, expected: object, edit: (document: Document) => void): string {
  const document = parseDocument(text);
  edit(document);
  const edited = verified(document.toString({ lineWidth: 0 }), expected);
  if (edited !== undefined) return edited;
  throw new NotUnderstood("its layout leaves no place for the change");
}
