import type { PolicyDocument } from "../../../schemas/generated/types.ts";
import { DENIED_READS, DENIED_WRITES, pathsOf, SEALED_WRITES } from "./default-denials.ts";

/**
 * The lists of `fs` in force, each by its key in a policy, and `sealed`: existing names that no command may change; a missing
 * name may be created by any command.
 */
export type FileLists = Readonly<
  Record<"read" | "deny_read" | "write" | "deny_write" | "scratch" | "sealed", readonly string[]>
>;

/** Returns a policy's file lists; a missing list gets its default. */
export function fileLists({ fs = {} }: PolicyDocument): FileLists {
  const deny_write = fs.deny_write ?? pathsOf(DENIED_WRITES);
  return {
    read: fs.read ?? ["/**"],
    deny_read: fs.deny_read ?? pathsOf(DENIED_READS),
    write: fs.write ?? ["$PROJECT/**"],
    deny_write,
    scratch: fs.scratch ?? [],
    // A policy with writable hooks in the project has no reason to protect the hooks of submodules.
    sealed: deny_write.some((path) => /(^|\/)\.git\//.test(path)) ? pathsOf(SEALED_WRITES) : [],
  };
}

/** Prints an allow list as the pattern of a rule. */
export function onlyListed(entries: readonly string[]): string {
  return entries.length === 0 ? "nothing" : `only ${entries.map((entry) => `'${entry}'`).join(", ")}`;
}
