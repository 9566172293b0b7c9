/**
 * The calls that change what stands under a name: where nothing lies between a command and its project, a listener is told
 * of them before they are carried out (`native/lib/file_calls.c` reads the names). It records and refuses nothing.
 *
 * Deliberately left, each with its reason:
 * - write, ftruncate, fallocate, copy_file_range, mmap: they need a descriptor, and its opening was told.
 * - utimensat and its like: a time alone is no change of a file, and tar and cp make one such call for each file.
 * - chown, setxattr, setxattrat, file_setattr, setfacl and their like: neither owner nor attributes are in a diff, and commands have no capability.
 * - mount and its like: refused. bind of a unix socket: in NAMING_CALLS, because no diff has sockets.
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

/**
 * Calls that give a name to what no diff has, or that a tree of files comes by: told as well, so that PID 1 knows when a denied
 * name that turns up can be a command's (`native/deny/calls_in_progress.h`). The numbers of ioctl(2), which are the same on x86-64 and
 * arm64, are those of the file systems that make names by one.
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
    // Its flags lie in memory, where no filter can look.
    "openat2",
    ...["rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat", "unlink", "unlinkat"],
    ...["mkdir", "mkdirat", "rmdir", "mknod", "mknodat", "truncate"],
    ...["chmod", "fchmod", "fchmodat", "fchmodat2"],
  ].map((call): FileCall => ({ call })),
  { call: "open", when: [{ argument: 1, anyOf: CHANGING }] },
  { call: "openat", when: [{ argument: 2, anyOf: CHANGING }] },
];
