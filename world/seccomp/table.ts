/**
 * System calls refused to every command. Data: a filter is assembled from the table (`assemble.ts`) and loaded once per world.
 *
 * Deliberately left, each with its reason:
 * - ptrace, process_vm_readv, process_vm_writev, pidfd_getfd: debuggers and crash handlers need them among a command's own
 * processes; the kernel refuses them on the supervisor and the leaders, which are not dumpable.
 * - seccomp, landlock_*: only add restrictions.
 * - mknod, chown, setuid and their like: need capabilities, and commands have none ({@link beyondOneUser} is about the error).
 * - setxattrat, removexattrat, file_setattr and their like: the same as setxattr and ioctl (FS_IOC_FSSETXATTR); a read-only mount
 * refuses them.
 * - inotify_*: used by the watchers of build tools. memfd_create: JIT compilers. AF_NETLINK with NETLINK_ROUTE: getaddrinfo.
 */

/** The error returned to the caller: programs probe for these errors, and live without the call. */
export type SeccompAction = "EPERM" | "ENOSYS" | "EAFNOSUPPORT";

/** A test of one argument's low 32 bits; the kernel reads no more of these arguments. */
export type ArgumentTest =
  /** Any of these bits is set. */
  | { readonly argument: number; readonly anyOf: number }
  /** Equals one of these values. */
  | { readonly argument: number; readonly isIn: readonly number[] }
  /** Differs from all of these values. */
  | { readonly argument: number; readonly notIn: readonly number[] };

export type SeccompRule = {
  readonly call: string;
  readonly action: SeccompAction;
  readonly reason: string;
  /** The rule applies only if every test holds; without tests, always. */
  readonly when?: readonly ArgumentTest[];
  /** The part still refused when `world.seccomp` is `log`; absent: every such call is allowed and reported. */
  readonly inLogMode?: StaysRefused;
  /** The leader needs the call to start a command in its cgroup, so only the command itself is refused. */
  readonly leaderNeeds?: true;
  /** PID 1 refuses and reports the call where a command has a listener; elsewhere the command's own filter refuses it. */
  readonly reported?: true;
};

/**
 * Log mode gives up the filter's own protection, but not the isolation of files and network claimed by the vector. So calls that
 * bypass the mounts or the network namespace stay refused, as do calls that hide other calls from the report.
 */
export type StaysRefused = {
  readonly reason: string;
  /** Replaces the rule's tests where these are wider than necessary. */
  readonly when?: readonly ArgumentTest[];
  /** False: not reported, because the refusal only makes the caller use another call, or does it no harm. */
  readonly told: boolean;
};

/** CLONE_NEWUSER (include/uapi/linux/sched.h). */
const USER_NAMESPACE = 0x1000_0000;

/**
 * Verified in a root world with an ordinary program: enter a user and a mount namespace, pivot away from the copied mounts and
 * detach them. A folder opened before is then no longer a mount point (`is_local_mountpoint`), so everything below can be renamed
 * and replaced on the host, including sealed and masked files. In a user-namespace world the kernel refuses by itself
 * (`max_user_namespaces` is 0 there); the row does not depend on that.
 */
const NESTED: StaysRefused = {
  reason:
    "a nested user namespace can detach the world's mounts, and then replace files that they seal or mask",
  when: [{ argument: 0, anyOf: USER_NAMESPACE }],
  told: true,
};

/** Pids of the supervisor and of the forker in their world (native/run/forker.c ends a world in which it has another). */
const PID_1 = 1;
const FORKER = 2;

/** A report of log mode tells at most 64 calls apart, and nobody looks for these. */
const QUIETLY: StaysRefused = { reason: "PID 1 guards denied names in log mode too", told: false };

/** PRIO_USER (include/uapi/linux/resource.h) and IOPRIO_WHO_USER (include/uapi/linux/ioprio.h). */
const OF_USER = { setpriority: 2, ioprio_set: 3 } as const;

/** AF_VSOCK (include/linux/socket.h). */
const VSOCK = 40;

/** The flags of clone(2) and unshare(2) that make a namespace (include/uapi/linux/sched.h). */
export const NAMESPACES = {
  CLONE_NEWTIME: 0x80,
  CLONE_NEWNS: 0x2_0000,
  CLONE_NEWCGROUP: 0x200_0000,
  CLONE_NEWUTS: 0x400_0000,
  CLONE_NEWIPC: 0x800_0000,
  CLONE_NEWUSER: USER_NAMESPACE,
  CLONE_NEWPID: 0x2000_0000,
  CLONE_NEWNET: 0x4000_0000,
} as const;

const NAMESPACE_FLAGS = Object.values(NAMESPACES).reduce((all, flag) => all | flag, 0);

const MOUNTS = "a new mount could uncover files that the world masks";
const KERNEL = "the call changes or reads the kernel itself";
const CLOCK = "the clock belongs to the whole machine";
const KEYS = "keyrings have no namespace, so they would be shared with the host";
const CAPABILITIES =
  "a nested user namespace gives capabilities, and with them the kernel's least tested code";

export const DENIED: readonly SeccompRule[] = [
  ...deny(
    ["mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen", "fsconfig"],
    MOUNTS,
  ),
  ...deny(["fsmount", "fspick", "mount_setattr", "open_tree_attr"], MOUNTS),
  { call: "unshare", action: "EPERM", reason: CAPABILITIES, inLogMode: NESTED, reported: true },
  ...deny(["setns"], CAPABILITIES),
  {
    call: "clone",
    action: "EPERM",
    reason: CAPABILITIES,
    when: [{ argument: 0, anyOf: NAMESPACE_FLAGS }],
    inLogMode: NESTED,
    reported: true,
  },
  {
    call: "clone3",
    action: "ENOSYS",
    reason: "its flags lie in memory, where no filter can look; C libraries fall back to clone",
    leaderNeeds: true,
    inLogMode: {
      reason: "the call could hide a nested user namespace; C libraries start threads by clone instead",
      told: false,
    },
  },
  ...deny(["bpf", "perf_event_open"], KERNEL),
  ...deny(["userfaultfd"], "it can stop the kernel in the middle of a page fault, which many exploits need"),
  ...["io_uring_setup", "io_uring_enter", "io_uring_register"].map(
    (call): SeccompRule => ({
      call,
      action: "ENOSYS",
      reason: "its requests are system calls that no filter sees",
      inLogMode: {
        reason: "its requests are system calls that would be neither filtered nor reported",
        told: true,
      },
    }),
  ),
  ...deny(
    ["kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "syslog"],
    KERNEL,
  ),
  ...deny(["iopl", "ioperm", "modify_ldt"], "the call reaches hardware or rarely tested processor state"),
  ...deny(
    ["reboot", "swapon", "swapoff", "acct", "quotactl", "quotactl_fd", "vhangup"],
    "the call affects the whole machine",
  ),
  ...deny(["settimeofday", "clock_settime", "clock_adjtime"], CLOCK),
  ...deny(["add_key", "request_key", "keyctl"], KEYS),
  ...deny(["open_by_handle_at", "fanotify_init"], "the call reaches files past the world's mounts"),
  ...deny(["sethostname", "setdomainname"], "commands may not change the world's host name"),
  {
    call: "ioctl",
    action: "EPERM",
    reason: "TIOCSTI types into, and TIOCLINUX pastes into, the terminal of whoever watches",
    when: [{ argument: 1, isIn: [0x5412, 0x541c] }],
  },
  {
    call: "socket",
    action: "EAFNOSUPPORT",
    reason:
      "commands need the address families UNIX, INET, INET6 and NETLINK; every other family only exposes more kernel code",
    when: [{ argument: 0, notIn: [1, 2, 10, 16] }],
    inLogMode: {
      reason:
        "a VSOCK socket reaches the machine's hypervisor or guests around the world's network namespace",
      when: [{ argument: 0, isIn: [VSOCK] }],
      told: true,
    },
  },
  {
    call: "socket",
    action: "EAFNOSUPPORT",
    reason: "of netlink, getaddrinfo and ss need only NETLINK_ROUTE (0) and NETLINK_SOCK_DIAG (4)",
    when: [
      { argument: 0, isIn: [16] },
      { argument: 2, notIn: [0, 4] },
    ],
  },
  {
    call: "fcntl",
    action: "EPERM",
    reason:
      "F_SETLEASE and F_SETDELEG make everybody on the host who opens the file wait for lease-break-time (45 s), again and again, on read-only mounts too",
    when: [{ argument: 1, isIn: [1024, 1040] }],
  },
  {
    call: "prlimit64",
    action: "EPERM",
    reason:
      "the kernel asks only for the same user: with a limit of processor time (RLIMIT_CPU) a command could kill PID 1 before it has looked for denied names, and every later command would inherit the forker's limits",
    when: [{ argument: 0, isIn: [PID_1, FORKER] }],
    inLogMode: { reason: "PID 1 guards denied names in log mode too", told: true },
  },
  // Each later command would inherit them. Where the kernel asks at all, it asks only for the same user.
  ...["sched_setscheduler", "sched_setparam", "sched_setattr", "sched_setaffinity"].map(
    (call): SeccompRule => ({
      call,
      action: "EPERM",
      reason: "a command could take processors or priority from PID 1 and from every later command",
      when: [{ argument: 0, isIn: [PID_1, FORKER] }],
      inLogMode: QUIETLY,
    }),
  ),
  ...(["setpriority", "ioprio_set"] as const).flatMap((call): SeccompRule[] => [
    {
      call,
      action: "EPERM",
      reason: "a command could take priority from PID 1 and from every later command",
      when: [{ argument: 1, isIn: [PID_1, FORKER] }],
      inLogMode: QUIETLY,
    },
    {
      call,
      action: "EPERM",
      reason: "the priority of all of a user's processes is PID 1's and every later command's too",
      when: [{ argument: 0, isIn: [OF_USER[call]] }],
      inLogMode: QUIETLY,
    },
  ]),
  {
    call: "personality",
    action: "EPERM",
    reason:
      "READ_IMPLIES_EXEC and its like undo hardening; asking, PER_LINUX32, UNAME26 and ADDR_NO_RANDOMIZE are harmless",
    when: [{ argument: 0, notIn: [0, 0x8, 0x2_0000, 0x2_0008, 0x4_0000, 0xffff_ffff] }],
  },
];

/**
 * How far `world.namespaces: allow` opens a world. `namespaces`: user namespaces, and process, network, IPC and host name namespaces
 * inside them. `mounts`: mount namespaces too.
 */
export type Openness = "closed" | "namespaces" | "mounts";

/**
 * Flags refused even in an open world: a cgroup namespace makes the cgroup file system mountable, and with it a command could
 * change its own limits; nobody needs a time namespace. A mount namespace needs a world built for it (`native/mount/keeper.h`).
 */
const CLOSED_FLAGS: Readonly<Record<Exclude<Openness, "closed">, number>> = {
  namespaces: NAMESPACES.CLONE_NEWCGROUP | NAMESPACES.CLONE_NEWTIME | NAMESPACES.CLONE_NEWNS,
  mounts: NAMESPACES.CLONE_NEWCGROUP | NAMESPACES.CLONE_NEWTIME,
};

/**
 * Calls that an open world leaves to the kernel, which asks for a capability over the namespace: commands have capabilities only
 * over namespaces of their own.
 */
const OPENED: Readonly<Record<Exclude<Openness, "closed">, readonly string[]>> = {
  namespaces: ["chroot"],
  mounts: ["chroot", "mount", "umount2", "pivot_root"],
};

/** The newer calls for mounts: programs that get ENOSYS use mount(2) instead. */
const NEW_MOUNT_CALLS = [
  "move_mount",
  "open_tree",
  "fsopen",
  "fsconfig",
  "fsmount",
  "fspick",
  "mount_setattr",
];

/** SOL_IP and SOL_IPV6. */
const LEVELS = [0, 41];

/**
 * IPT_SO_SET_REPLACE and _ADD_COUNTERS (the same numbers for IPv6), ARPT_SO_SET_*, EBT_SO_SET_*. In a network namespace of its own
 * a command has CAP_NET_ADMIN, which opens these parts of netfilter; nftables stays closed by the row for netlink.
 */
const PACKET_TABLES = [64, 65, 96, 97, 128, 129];

const IN_OPEN_WORLDS: readonly SeccompRule[] = [
  {
    call: "setsockopt",
    action: "EPERM",
    reason:
      "the tables of iptables, arptables and ebtables are rarely tested kernel code, open to a network namespace's maker",
    when: [
      { argument: 1, isIn: LEVELS },
      { argument: 2, isIn: PACKET_TABLES },
    ],
  },
];

/** AF_UNIX. */
const UNIX = 1;

/** SOCK_DGRAM and SOCK_RAW (a datagram socket too, for AF_UNIX), with and without SOCK_CLOEXEC and SOCK_NONBLOCK. */
const DATAGRAMS = [2, 3].flatMap((type) => [0, 0x8_0000, 0x800, 0x8_0800].map((flags) => type | flags));

const HOST_DATAGRAMS =
  "in the host's network namespace sendmsg to an abstract name, which lies in memory, would reach the host's programs";

/** Rows for a world that has the host's network namespace. */
export const BESIDE_HOST: readonly SeccompRule[] = ["socket", "socketpair"].map((call) => ({
  call,
  action: "EAFNOSUPPORT",
  reason: HOST_DATAGRAMS,
  when: [
    { argument: 0, isIn: [UNIX] },
    { argument: 1, isIn: DATAGRAMS },
  ],
  inLogMode: { reason: HOST_DATAGRAMS, told: true },
}));

/** The user whose ids alone the user namespace of a world maps. */
export type OneUser = { readonly uid: number; readonly gid: number };

/** (uid_t)-1: leaves an id as it is. */
const UNCHANGED = 0xffff_ffff;

/** Where calls name users and groups. */
const NAMED_IDS: readonly (readonly [call: string, uids: readonly number[], gids: readonly number[]])[] = [
  ["chown", [1], [2]],
  ["lchown", [1], [2]],
  ["fchown", [1], [2]],
  ["fchownat", [2], [3]],
  ["setuid", [0], []],
  ["setreuid", [0, 1], []],
  ["setresuid", [0, 1, 2], []],
  ["setgid", [], [0]],
  ["setregid", [], [0, 1]],
  ["setresgid", [], [0, 1, 2]],
];

/**
 * Returns the rows for a world with a user namespace of its own. The kernel refuses a user or group without a mapping by EINVAL
 * (`make_kuid`, user_namespaces(7)), where it answers EPERM to an ordinary user outside; fakeroot and other programs expect
 * EPERM. Not for log mode, where nothing of that is news, nor where commands make namespaces and map ids themselves.
 */
export function beyondOneUser({ uid, gid }: OneUser): readonly SeccompRule[] {
  const reason = "commands have one user and one group, as an ordinary user has";
  const rows = (call: string, at: readonly number[], id: number): readonly SeccompRule[] =>
    at.map((argument) => ({ call, action: "EPERM", reason, when: [{ argument, notIn: [id, UNCHANGED] }] }));
  return NAMED_IDS.flatMap(([call, uids, gids]) => [...rows(call, uids, uid), ...rows(call, gids, gid)]);
}

/** Returns the rows for a world that is open this far. */
export function deniedIn(openness: Openness): readonly SeccompRule[] {
  if (openness === "closed") return DENIED;
  const when = [{ argument: 0, anyOf: CLOSED_FLAGS[openness] }];
  const rows = DENIED.filter(({ call }) => !OPENED[openness].includes(call)).map((row): SeccompRule => {
    if (row.call === "unshare" || row.call === "clone") return { ...row, when };
    if (openness === "mounts" && NEW_MOUNT_CALLS.includes(row.call)) return { ...row, action: "ENOSYS" };
    return row;
  });
  return [...rows, ...IN_OPEN_WORLDS];
}

/**
 * Divides rows between the filter of all processes of a world and the short filter that each command loads before its program. With
 * cgroups, leaders start commands by a call of the second part (CLONE_INTO_CGROUP).
 */
export function dividedRows(
  rows: readonly SeccompRule[],
  withCgroup: boolean,
): { readonly all: readonly SeccompRule[]; readonly commands: readonly SeccompRule[] } {
  const isOwn = ({ leaderNeeds, reported }: SeccompRule): boolean =>
    reported === true || (withCgroup && leaderNeeds === true);
  return { all: rows.filter((row) => !isOwn(row)), commands: rows.filter(isOwn) };
}

function deny(calls: readonly string[], reason: string): readonly SeccompRule[] {
  return calls.map((call) => ({ call, action: "EPERM", reason }));
}
