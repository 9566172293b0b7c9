/**
 * The calls that change what stands under a name: where nothing lies between a command and its project, a listener is told
 * of them before they are carried out (`init/file_calls.c` reads the names). It records and refuses nothing.
 *
 * Deliberately left, each with its reason:
 * - write, ftruncate, fallocate, copy_file_range, mmap: they need a descriptor, and its opening was told.
 * - utimensat and its like: a time alone is no change of a file, and tar and cp make one such call for each file.
 * - chown, setxattr, setfacl and their like: neither owner nor attributes are in a diff, and commands have no capability.
 * - mount and its like: refused. bind of a unix socket: a socket is no file that could be kept.
 * - io_uring: refused in both modes, because its requests are calls that no filter sees.
 */
import type { ArgumentTest } from "./table.ts";

export type FileCall = {
  readonly call: string;
  /** All must hold for it to be told; none: it always is. */
  readonly when?: readonly ArgumentTest[];
};

/** O_WRONLY, O_RDWR, O_CREAT and O_TRUNC: the same bits on x86-64 and arm64 (include/uapi/asm-generic/fcntl.h). */
const CHANGING = 0o1 | 0o2 | 0o100 | 0o1000;

export const FILE_CALLS: readonly FileCall[] = [
  ...[
    "creat",
    // Its flags lie in memory, where no filter can look.
    "openat2",
    ...["rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat", "unlink", "unlinkat"],
    ...["mkdir", "mkdirat", "rmdir", "mknod", "mknodat", "truncate"],
    ...["chmod", "fchmod", "fchmodat", "fchmodat2"],
  ].map((call): FileCall => ({ call })),
  { call: "open", when: [{ argument: 1, anyOf: CHANGING }] },
  { call: "openat", when: [{ argument: 2, anyOf: CHANGING }] },
];
