/**
 * Numbers of the system calls in the table, per architecture; null for a call missing on an architecture. From the kernel's
 * `arch/x86/entry/syscalls/syscall_64.tbl` and `include/uapi/asm-generic/unistd.h` (arm64).
 */
export type Architecture = "x64" | "arm64";

/** AUDIT_ARCH_X86_64 and AUDIT_ARCH_AARCH64 (include/uapi/linux/audit.h). */
export const AUDIT: Readonly<Record<Architecture, number>> = { x64: 0xc000_003e, arm64: 0xc000_00b7 };

/** AUDIT_ARCH_I386 and AUDIT_ARCH_ARM: 32-bit interfaces on the same machines. */
const OLDER: ReadonlyMap<number, string> = new Map([
  [0x4000_0003, "i386"],
  [0x4000_0028, "arm"],
]);

/** Bit in the numbers of the x32 interface: the same calls, numbered differently. */
export const X32_BIT = 0x4000_0000;

const NUMBERS: Readonly<Record<string, readonly [x64: number | null, arm64: number | null]>> = {
  acct: [163, 89],
  add_key: [248, 217],
  bind: [49, 200],
  bpf: [321, 280],
  chmod: [90, null],
  chown: [92, null],
  chroot: [161, 51],
  clock_adjtime: [305, 266],
  clock_settime: [227, 112],
  clone: [56, 220],
  clone3: [435, 435],
  connect: [42, 203],
  creat: [85, null],
  delete_module: [176, 106],
  execve: [59, 221],
  execveat: [322, 281],
  fanotify_init: [300, 262],
  fchmod: [91, 52],
  fchmodat: [268, 53],
  fchmodat2: [452, 452],
  fchown: [93, 55],
  fchownat: [260, 54],
  fcntl: [72, 25],
  finit_module: [313, 273],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fsopen: [430, 430],
  fspick: [433, 433],
  init_module: [175, 105],
  ioprio_set: [251, 30],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
  io_uring_setup: [425, 425],
  ioctl: [16, 29],
  ioperm: [173, null],
  iopl: [172, null],
  kexec_file_load: [320, 294],
  kexec_load: [246, 104],
  keyctl: [250, 219],
  lchown: [94, null],
  link: [86, null],
  linkat: [265, 37],
  listen: [50, 201],
  mkdir: [83, null],
  mkdirat: [258, 34],
  mknod: [133, null],
  mknodat: [259, 33],
  modify_ldt: [154, null],
  mount: [165, 40],
  mount_setattr: [442, 442],
  move_mount: [429, 429],
  open: [2, null],
  open_by_handle_at: [304, 265],
  open_tree: [428, 428],
  open_tree_attr: [467, 467],
  openat: [257, 56],
  openat2: [437, 437],
  perf_event_open: [298, 241],
  personality: [135, 92],
  pivot_root: [155, 41],
  prlimit64: [302, 261],
  quotactl: [179, 60],
  quotactl_fd: [443, 443],
  reboot: [169, 142],
  rename: [82, null],
  renameat: [264, 38],
  renameat2: [316, 276],
  request_key: [249, 218],
  rmdir: [84, null],
  sched_setaffinity: [203, 122],
  sched_setattr: [314, 274],
  sched_setparam: [142, 118],
  sched_setscheduler: [144, 119],
  sendto: [44, 206],
  setdomainname: [171, 162],
  setgid: [106, 144],
  sethostname: [170, 161],
  setns: [308, 268],
  setpriority: [141, 140],
  setregid: [114, 143],
  setresgid: [119, 149],
  setresuid: [117, 147],
  setreuid: [113, 145],
  setsockopt: [54, 208],
  settimeofday: [164, 170],
  setuid: [105, 146],
  socket: [41, 198],
  socketpair: [53, 199],
  swapoff: [168, 225],
  swapon: [167, 224],
  symlink: [88, null],
  symlinkat: [266, 36],
  syslog: [103, 116],
  truncate: [76, 45],
  umount2: [166, 39],
  unlink: [87, null],
  unlinkat: [263, 35],
  unshare: [272, 97],
  userfaultfd: [323, 282],
  vhangup: [153, 58],
};

/** Returns the number of a system call; null if missing on the architecture. Throws on a name unknown here. */
export function callNumber(name: string, architecture: Architecture): number | null {
  const row = NUMBERS[name];
  if (row === undefined) throw new RangeError(`No number is known for the system call '${name}'`);
  return architecture === "x64" ? row[0] : row[1];
}

/** A system call, identified by number and interface. */
export type CallIdentity =
  | { readonly kind: "known"; readonly call: string; readonly architecture: Architecture }
  /** Unknown to the table: made by another interface, or with a number missing in this file. */
  | { readonly kind: "foreign"; readonly interface: string; readonly number: number };

/** Identifies a call by number and interface (AUDIT_ARCH_*). */
export function identifyCall(number: number, audit: number): CallIdentity {
  const architecture = audit === AUDIT.x64 ? "x64" : audit === AUDIT.arm64 ? "arm64" : undefined;
  if (architecture === undefined) {
    return { kind: "foreign", interface: OLDER.get(audit) ?? `0x${audit.toString(16)}`, number };
  }
  if (architecture === "x64" && number >= X32_BIT) {
    return { kind: "foreign", interface: "x32", number: number - X32_BIT };
  }
  const call = Object.keys(NUMBERS).find((name) => callNumber(name, architecture) === number);
  if (call === undefined) return { kind: "foreign", interface: architecture, number };
  return { kind: "known", call, architecture };
}

/** Returns the architecture for a filter. Throws on an architecture without a table: a world needs a filter. */
export function architectureOf(name: string): Architecture {
  if (name === "x64" || name === "arm64") return name;
  throw new RangeError(`No system call table for the architecture '${name}': worlds need x64 or arm64`);
}
