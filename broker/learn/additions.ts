import type { PolicyDocument } from "../../schemas/generated/types.ts";
import { type CompiledPolicy, parsePolicy } from "../policy/index.ts";
import { fileLists } from "../policy/files/file-lists.ts";
import type { Seen } from "./observations.ts";

/** The lists that an item can be added to so that more is allowed and nothing else changes. */
export type LearnedList = "commands.allowed" | "approval.auto_approve" | "fs.write" | "net.allowed";

/** And one that a person opens. */
export type OpenedList = LearnedList | "fs.read";

/** One line of the proposal. */
export type Addition = { readonly list: LearnedList; readonly value: string; readonly seen: Seen };

/** An item of a list. */
export type Item = { readonly list: OpenedList; readonly value: string };

/**
 * The document with these items at the ends of their lists. An absent list of `fs` keeps what its absence means. Pure.
 */
export function withAdditions(document: PolicyDocument, additions: readonly Item[]): PolicyDocument {
  const of = (list: OpenedList): string[] =>
    additions.filter((addition) => addition.list === list).map(({ value }) => value);
  const [allowed, approved, writes] = [of("commands.allowed"), of("approval.auto_approve"), of("fs.write")];
  const [reads, names] = [of("fs.read"), of("net.allowed")];
  const lists = fileLists(document);
  const { commands, approval, fs, net } = document;
  return {
    ...document,
    ...(allowed.length === 0
      ? {}
      : { commands: { ...commands, allowed: [...(commands?.allowed ?? []), ...allowed] } }),
    ...(approved.length === 0
      ? {}
      : { approval: { ...approval, auto_approve: [...(approval?.auto_approve ?? []), ...approved] } }),
    ...(reads.length + writes.length === 0
      ? {}
      : {
          fs: {
            ...fs,
            ...(reads.length === 0 ? {} : { read: [...lists.read, ...reads] }),
            ...(writes.length === 0 ? {} : { write: [...lists.write, ...writes] }),
          },
        }),
    ...(names.length === 0 ? {} : { net: { ...net, allowed: [...(net?.allowed ?? []), ...names] } }),
  };
}

/** A document as a policy. Throws when it is none: what was added to a policy that loads is checked word by word before. */
export function compiled(document: PolicyDocument, file: string): CompiledPolicy {
  const loaded = parsePolicy(JSON.stringify(document), file);
  if ("ok" in loaded) return loaded.ok;
  throw new Error(`The proposal is no policy: ${loaded.problems.map(({ text }) => text).join("; ")}`);
}
