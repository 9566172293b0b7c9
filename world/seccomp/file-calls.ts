/**
 * The calls that change a name, or the file behind a name. For direct commands, which write to the project itself, a listener
 * is notified before each such call (`native/lib/file_calls.c` reads the names). The listener records, and refuses nothing.
 *
 * Deliberately left, each with its reason:
 * - write, ftruncate, fallocate, copy_file_range, mmap: need a descriptor, already notified by its open.
 * - utimensat and its like: a new time alone is no change of a file, and tar and cp make one such call per file.
 * - chown, setxattr, setxattrat, file_setattr, setfacl and their like: a diff has neither owner nor attributes, and commands have
 * no capability.
 * - mount and its like: refused. bind of a unix socket: in NAMING_CALLS, because a diff has no sockets.
 * - io_uring: refused in both modes, because filters do not see its requests.
 */
import type { ArgumentTest } from "./table.ts";

export type FileCall = {
  readonly call: string;
  /** Notified only if every test holds; without tests, always. */
  readonly when?: readonly ArgumentTest[];
};

/** O_WRONLY, O_RDWR, O_CREAT and O_TRUNC: the same bits on x86-64 and arm64 (include/uapi/asm-generic/fcntl.h). */
const CHANGING = 0o1 | 0o2 | 0o100 | 0o1000;

/**
 * Calls that create a name missing in diffs, or a whole tree of files. Notified too, so that PID 1 knows whether a command can
 * have made a new denied name (`native/deny/calls_in_progress.h`). The ioctl(2) numbers, equal on x86-64 and arm64, belong to
 * file systems with such an ioctl.
 */
export const NAMING_CALLS: readonly FileCall[] = [
  { call: "bind" },
  {
    call: "ioctl",
    when: [
      {
        argument: 1,
        isIn: [
          // BTRFS_IOC_SNAP_CREATE, _SUBVOL_CREATE and their second versions (include/uapi/linux/btrfs.h).
          ...[0x5000_9401, 0x5000_940e, 0x5000_9417, 0x5000_9418],
          // BCH_IOCTL_SUBVOLUME_CREATE (fs/bcachefs/bcachefs_ioctl.h), OCFS2_IOC_REFLINK (fs/ocfs2/ocfs2_ioctl.h).
          ...[0x4020_bc10, 0x4018_6f04],
        ],
      },
    ],
  },
];

export const FILE_CALLS: readonly FileCall[] = [
  ...[
    "creat",
    // Its flags lie in memory, invisible to a filter.
    "openat2",
    ...["rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat", "unlink", "unlinkat"],
    ...["mkdir", "mkdirat", "rmdir", "mknod", "mknodat", "truncate"],
    ...["chmod", "fchmod", "fchmodat", "fchmodat2"],
  ].map((call): FileCall => ({ call })),
  { call: "open", when: [{ argument: 1, anyOf: CHANGING }] },
  { call: "openat", when: [{ argument: 2, anyOf: CHANGING }] },
];
