/** What `substrate init` adds to a settings file, as data: a record keeps it, and `--undo` takes it out of a changed file. */
import { isDeepStrictEqual } from "node:util";
import { policyInConfig, withAgent, withoutAgent } from "./config-text.ts";
import {
  type JsonPath,
  nodeAt,
  readJson,
  valueOf,
  withElement,
  withProperty,
  withValue,
  withoutChild,
} from "./json-text.ts";
import { withItems, withoutItems } from "./yaml-text.ts";
import { NotUnderstood } from "./not-understood.ts";
import { readToml, withKey, withTables, withoutKey, withoutTables } from "./toml-text.ts";

/** A hook under its event: in a group with a matcher, or by itself. */
export type Hook = {
  readonly event: string;
  readonly matcher?: string;
  readonly hook: { readonly command: string } & Readonly<Record<string, unknown>>;
  /** Of a file that only holds hooks, and that the agent does not read without it. */
  readonly version?: number;
};

export type Part =
  | { readonly kind: "json-hook"; readonly hook: Hook }
  | { readonly kind: "toml-hook"; readonly hook: Hook }
  | { readonly kind: "toml-key"; readonly key: string; readonly value: string }
  | { readonly kind: "yaml-list"; readonly key: string; readonly items: readonly string[] }
  | { readonly kind: "config-agent"; readonly agent: string; readonly policy: string }
  | { readonly kind: "whole"; readonly text: string };

/** A text with a part, or without it. `notes` tell what is different from what one would expect. */
export type Edited = { readonly text: string; readonly notes: readonly string[] };

const BOM = "\uFEFF";

/** Adds a part; the same text where it is there already. Throws {@link NotUnderstood}. */
export function withPart(text: string, part: Part): Edited {
  return text.startsWith(BOM) ? prefixed(withPart(text.slice(1), part)) : added(text, part);
}

/** Takes a part out and leaves everything else; the same text where it is gone. Throws {@link NotUnderstood}. */
export function withoutPart(text: string, part: Part): Edited {
  return text.startsWith(BOM) ? prefixed(withoutPart(text.slice(1), part)) : taken(text, part);
}

/** Whether a text holds the part. False for a text that cannot be read. */
export function holdsPart(text: string, part: Part): boolean {
  try {
    return withoutPart(text, part).text !== text;
  } catch {
    return false;
  }
}

/** Whether a text holds the part as it was written. A hook that only looks like ours may run nothing of ours. */
export function isAsWritten(text: string, part: Part): boolean {
  if (!holdsPart(text, part)) return false;
  if (part.kind !== "json-hook" && part.kind !== "toml-hook") return true;
  try {
    return withPart(text, part).text === text;
  } catch {
    return false;
  }
}

function prefixed({ text, notes }: Edited): Edited {
  return { text: BOM + text, notes };
}

function added(text: string, part: Part): Edited {
  switch (part.kind) {
    case "json-hook":
      return withJsonHook(text.trim() === "" ? emptyFile(part.hook) : text, part.hook);
    case "toml-hook":
      return withTomlHook(text, part.hook);
    case "toml-key":
      return withTomlKey(text, part.key, part.value);
    case "yaml-list":
      return withItems(text, part.key, part.items);
    case "config-agent":
      return withConfigAgent(text, part.agent, part.policy);
    case "whole":
      if (text === "" || text.startsWith(firstLine(part.text))) return { text: part.text, notes: [] };
      throw new NotUnderstood("it is a file of another origin, which would be lost");
  }
}

function taken(text: string, part: Part): Edited {
  switch (part.kind) {
    case "json-hook":
      return { text: withoutJsonHook(text, part.hook), notes: [] };
    case "toml-hook":
      return withoutTomlHook(text, part.hook);
    case "toml-key":
      return { text: withoutKey(text, part.key, part.value) ?? text, notes: [] };
    case "yaml-list":
      return { text: withoutItems(text, part.key, part.items), notes: [] };
    case "config-agent": {
      const policy = policyInConfig(text, part.agent);
      if (policy === part.policy) return { text: withoutAgent(text, part.agent), notes: [] };
      return {
        text,
        notes: policy === undefined ? [] : [`'${part.agent}' has the policy '${policy}' now, and stays`],
      };
    }
    case "whole":
      return text === part.text
        ? { text: "", notes: [] }
        : { text, notes: ["it was changed since, so all of it stays: remove the file by hand"] };
  }
}

function emptyFile({ version }: Hook): string {
  return version === undefined ? "{}\n" : `{\n  "version": ${version}\n}\n`;
}

function firstLine(text: string): string {
  return text.slice(0, text.indexOf("\n") + 1);
}

type Found = {
  readonly path: JsonPath;
  readonly command: string;
  /** Whether nothing but the front's place differs from what this would write. */
  readonly isWhole: boolean;
};

/** The hooks of an event whose command is ours: the same, or the same agent's with the front at another place. */
function ourHooks(entries: unknown, wanted: Hook): readonly Found[] {
  if (!Array.isArray(entries)) return [];
  const { event, matcher, hook } = wanted;
  const end = hook.command.slice(hook.command.lastIndexOf("/"));
  return entries.flatMap((entry: { matcher?: unknown; hooks?: unknown } | null, at) => {
    const inGroup = matcher !== undefined;
    const hooks: readonly unknown[] = inGroup ? (Array.isArray(entry?.hooks) ? entry.hooks : []) : [entry];
    return hooks.flatMap((each, index) => {
      const found = (each as { command?: unknown } | null)?.command;
      if (typeof found !== "string" || !found.endsWith(end)) return [];
      const path = ["hooks", event, at, ...(inGroup ? ["hooks", index] : [])];
      const { hooks: _hooks, ...group } = inGroup ? (entry as object & { hooks?: unknown }) : {};
      const isWhole = isDeepStrictEqual(
        [group, { ...(each as object) }],
        [inGroup ? { matcher } : {}, { ...hook, command: found }],
      );
      return [{ path, command: found, isWhole }];
    });
  });
}

function entryOf({ matcher, hook }: Hook): object {
  return matcher === undefined ? hook : { matcher, hooks: [hook] };
}

function withJsonHook(text: string, hook: Hook): Edited {
  const { event } = hook;
  const tree = readJson(text);
  const groups = nodeAt(tree, ["hooks", event]);
  const [ours] = groups === undefined ? [] : ourHooks(valueOf(groups), hook);
  if (ours?.isWhole === true) {
    if (ours.command === hook.hook.command) return { text, notes: [] };
    return { text: withValue(text, [...ours.path, "command"], hook.hook.command), notes: [] };
  }
  // A repository may bring a hook that looks like ours, and by another field runs another program, or for other tools.
  if (ours !== undefined) {
    const { text: anew, notes } = withJsonHook(withoutJsonHook(text, hook), hook);
    return {
      text: anew,
      notes: [`its hook of ${event} differed from this one, which replaces it`, ...notes],
    };
  }
  const edited = withGroup(text, hook);
  if (isDeepStrictEqual(valueOf(readJson(edited)), expectedWith(valueOf(tree), hook)))
    return { text: edited, notes: [] };
  throw new NotUnderstood("its layout leaves no place for the change");
}

function withGroup(text: string, hook: Hook): string {
  const { event } = hook;
  const tree = readJson(text);
  if (nodeAt(tree, ["hooks", event]) !== undefined) return withElement(text, ["hooks", event], entryOf(hook));
  const groups = [entryOf(hook)];
  return nodeAt(tree, ["hooks"]) === undefined
    ? withProperty(text, [], "hooks", { [event]: groups })
    : withProperty(text, ["hooks"], event, groups);
}

function expectedWith(before: unknown, hook: Hook): object {
  const settings = before as { readonly hooks?: Readonly<Record<string, readonly unknown[]>> };
  const groups = settings.hooks?.[hook.event] ?? [];
  return { ...settings, hooks: { ...settings.hooks, [hook.event]: [...groups, entryOf(hook)] } };
}

function withoutJsonHook(text: string, hook: Hook): string {
  const { event } = hook;
  let edited = text;
  for (;;) {
    const groups = nodeAt(readJson(edited), ["hooks", event]);
    const [ours] = groups === undefined ? [] : ourHooks(valueOf(groups), hook);
    if (ours === undefined) return edited;
    edited = withoutChild(edited, emptied(edited, ours.path));
  }
}

/** The outermost of the lists and objects around a hook that hold nothing else. */
function emptied(text: string, path: JsonPath): JsonPath {
  const tree = readJson(text);
  const isAlone = (at: JsonPath): boolean => nodeAt(tree, at)?.children?.length === 1;
  const entry = path.length > 3 && isAlone(path.slice(0, 4)) ? path.slice(0, 3) : path;
  if (entry.length > 3 || !isAlone(path.slice(0, 2))) return entry;
  return isAlone(["hooks"]) ? ["hooks"] : path.slice(0, 2);
}

type TomlHooks = { readonly hooks?: Readonly<Record<string, unknown>> };

function withTomlHook(text: string, hook: Hook): Edited {
  const document = readToml(text) as TomlHooks;
  const groups = document.hooks?.[hook.event];
  const [ours] = ourHooks(groups, hook);
  if (ours !== undefined) {
    if (!ours.isWhole)
      throw new NotUnderstood(`its hook of ${hook.event} differs from Substrate's: remove it by hand`);
    if (ours.command === hook.hook.command) return { text, notes: [] };
    throw new NotUnderstood(
      `it names the hook ${ours.command}: change that line to ${hook.hook.command} by hand`,
    );
  }
  const list: readonly unknown[] = Array.isArray(groups) ? groups : [];
  const expected = { ...document, hooks: { ...document.hooks, [hook.event]: [...list, entryOf(hook)] } };
  return { text: withTables(text, tomlTables(hook), expected), notes: [] };
}

function withoutTomlHook(text: string, hook: Hook): Edited {
  const document = readToml(text) as TomlHooks;
  const groups = document.hooks?.[hook.event];
  const [ours] = ourHooks(groups, hook);
  if (ours === undefined || !Array.isArray(groups)) return { text, notes: [] };
  const left = groups.filter((_group, index) => index !== ours.path[2]);
  const { [hook.event]: _ours, ...events } = document.hooks ?? {};
  const { hooks: _hooks, ...others } = document;
  const hooks = left.length === 0 ? events : { ...events, [hook.event]: left };
  const expected = Object.keys(hooks).length === 0 ? others : { ...others, hooks };
  const edited = withoutTables(text, tomlTables(hook), expected);
  if (edited !== undefined) return { text: edited, notes: [] };
  return { text, notes: [`the hook ${ours.command} was edited since, and stays: remove it by hand`] };
}

function tomlTables({ event, matcher, hook }: Hook): string {
  const fields = Object.entries(hook).map(([name, value]) => `${name} = ${JSON.stringify(value)}\n`);
  return `[[hooks.${event}]]\nmatcher = ${JSON.stringify(matcher)}\n\n[[hooks.${event}.hooks]]\n${fields.join("")}`;
}

function withTomlKey(text: string, key: string, value: string): Edited {
  const found = readToml(text)[key];
  if (found === value) return { text, notes: [] };
  if (found === undefined) return { text: withKey(text, key, value), notes: [] };
  return { text, notes: [`${key} is ${JSON.stringify(found)} there, and stays`] };
}

function withConfigAgent(text: string, agent: string, policy: string): Edited {
  const found = policyInConfig(text, agent);
  if (found === undefined) return { text: withAgent(text, agent, policy), notes: [] };
  return {
    text,
    notes: found === policy ? [] : [`'${agent}' has the policy '${found}' there, and keeps it`],
  };
}
