/**
 * The calls that start programs: a listener is told of each, so that a gate can ask about it (`native/notify/starts/starts.c`). fexecve is
 * execveat; posix_spawn is one of them after a clone; binfmt_misc and `#!` lines are read by the kernel behind them.
 */
import type { FileCall } from "./file-calls.ts";

export const START_CALLS: readonly FileCall[] = [{ call: "execve" }, { call: "execveat" }];
