import type { PolicyDocument } from "../../../schemas/generated/types.ts";
import { DENIED_READS, DENIED_WRITES, pathsOf, SEALED_WRITES } from "./default-denials.ts";

/**
 * The lists of `fs` as they hold, each by its key in a policy, and `sealed`: what no command may change where it
 * stands, and any may make where it does not.
 */
export type FileLists = Readonly<
  Record<"read" | "deny_read" | "write" | "deny_write" | "scratch" | "sealed", readonly string[]>
>;

/** What a policy says about files; what it does not say has its default. */
export function fileLists({ fs = {} }: PolicyDocument): FileLists {
  const deny_write = fs.deny_write ?? pathsOf(DENIED_WRITES);
  return {
    read: fs.read ?? ["/**"],
    deny_read: fs.deny_read ?? pathsOf(DENIED_READS),
    write: fs.write ?? ["$PROJECT/**"],
    deny_write,
    scratch: fs.scratch ?? [],
    // Whoever lets commands change the project's own hooks has no reason to keep those of its submodules.
    sealed: deny_write.some((path) => /(^|\/)\.git\//.test(path)) ? pathsOf(SEALED_WRITES) : [],
  };
}
