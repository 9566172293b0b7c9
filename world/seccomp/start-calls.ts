/**
 * The calls that start programs: a listener is notified of each, so that a gate can decide (`native/notify/starts/starts.c`).
 * fexecve is execveat; posix_spawn is a clone followed by one of the two; the kernel itself follows binfmt_misc and `#!` lines
 * afterwards.
 */
import type { FileCall } from "./file-calls.ts";

export const START_CALLS: readonly FileCall[] = [{ call: "execve" }, { call: "execveat" }];
