import type { PolicyDocument } from "../schemas/generated/types.ts";
import { DENIED_READS, DENIED_WRITES, pathsOf } from "./default-denials.ts";

/** The four lists of `fs` as they hold, each by its key in a policy. */
export type FileLists = Readonly<Record<"read" | "deny_read" | "write" | "deny_write", readonly string[]>>;

/** What a policy says about files; what it does not say has its default. */
export function fileLists({ fs = {} }: PolicyDocument): FileLists {
  return {
    read: fs.read ?? ["/**"],
    deny_read: fs.deny_read ?? pathsOf(DENIED_READS),
    write: fs.write ?? ["$PROJECT/**"],
    deny_write: fs.deny_write ?? pathsOf(DENIED_WRITES),
  };
}
