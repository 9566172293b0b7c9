import type { PolicyDocument } from "../../schemas/generated/types.ts";
import { type CompiledPolicy, parsePolicy } from "../policy/index.ts";
import { fileLists } from "../policy/files/file-lists.ts";
import type { Seen } from "./observations.ts";

/** Lists in which an added item only allows more, without any other change. */
export type LearnedList = "commands.allowed" | "approval.auto_approve" | "fs.write" | "net.allowed";

/** Lists with room for new items: the learned lists, and `fs.read`, which only a person opens. */
export type OpenedList = LearnedList | "fs.read";

/** A line of the proposal. */
export type Addition = { readonly list: LearnedList; readonly value: string; readonly seen: Seen };

/** An item of a list. */
export type Item = { readonly list: OpenedList; readonly value: string };

/** Appends items to lists of a document. An absent list of `fs` first gets its default. Pure. */
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

/** Compiles a document. Throws for an invalid policy: callers add only validated items to a policy that loads. */
export function compiled(document: PolicyDocument, file: string): CompiledPolicy {
  const loaded = parsePolicy(JSON.stringify(document), file);
  if ("ok" in loaded) return loaded.ok;
  throw new Error(
    `The proposal does not load as a policy: ${loaded.problems.map(({ text }) => text).join("; ")}`,
  );
}
