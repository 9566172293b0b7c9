/**
 * What no command may ask the kernel for. Data: a filter is assembled from it (`assemble.ts`) and loaded once per world.
 *
 * Deliberately left, each with its reason:
 * - ptrace, process_vm_readv, process_vm_writev, pidfd_getfd: debuggers and crash handlers need them among a command's
 *   own processes; the supervisor and the leaders are not dumpable, so the kernel refuses there.
 * - seccomp, landlock_*: they only take away.
 * - mknod, chown, setuid and their like: capabilities decide, and there are none.
 * - setxattrat, removexattrat, file_setattr and their like: what setxattr and ioctl (FS_IOC_FSSETXATTR) do by another name; a mount that
 *   is read-only refuses them.
 * - inotify_*: watchers of every build tool. memfd_create: JIT compilers. AF_NETLINK with NETLINK_ROUTE: getaddrinfo.
 */

/** The kernel's answer: an errno for what programs probe for and live without, or the end of the process. */
export type SeccompAction = "EPERM" | "ENOSYS" | "EAFNOSUPPORT";

/** A condition on one argument's low 32 bits; that is all the kernel looks at for these arguments. */
export type ArgumentTest =
  /** Any of these bits is set. */
  | { readonly argument: number; readonly anyOf: number }
  /** It is one of these values. */
  | { readonly argument: number; readonly isIn: readonly number[] }
  /** It is none of these values. */
  | { readonly argument: number; readonly notIn: readonly number[] };

export type SeccompRule = {
  readonly call: string;
  readonly action: SeccompAction;
  readonly reason: string;
  /** All must hold for the rule to apply; none: it always applies. */
  readonly when?: readonly ArgumentTest[];
  /** What of it stays refused where `world.seccomp` is `log`; without it all of it is let through, and told. */
  readonly inLogMode?: StaysRefused;
  /** What starts a command in its cgroup asks for it, so only the command itself is refused it. */
  readonly leaderNeeds?: true;
};

/**
 * Log mode gives up what the filter adds, never what the vector still claims of files and network. So a call that gets
 * around the mounts or the network namespace stays refused, and so does what would hide other calls from being told.
 */
export type StaysRefused = {
  readonly reason: string;
  /** Instead of the rule's own condition, where that is wider than what must be refused. */
  readonly when?: readonly ArgumentTest[];
  /** False: nobody is told, because the call is refused only so that its caller takes another. */
  readonly told: boolean;
};

/** CLONE_NEWUSER (include/uapi/linux/sched.h). */
const USER_NAMESPACE = 0x1000_0000;

/**
 * Tried, in a world of root's, by an ordinary program: enter a user and a mount namespace, pivot away from the copied
 * mounts and detach them; a folder that was open before is then no mount point any more (`is_local_mountpoint`), so what
 * lies below it is renamed and replaced on the host, sealed and masked files included. In a user-namespace world the
 * kernel refuses by itself (`max_user_namespaces` is 0 there); the row does not lean on that.
 */
const NESTED: StaysRefused = {
  reason:
    "a nested user namespace can detach the world's mounts, and then replace files that they seal or mask",
  when: [{ argument: 0, anyOf: USER_NAMESPACE }],
  told: true,
};

/** AF_VSOCK (include/linux/socket.h). */
const VSOCK = 40;

/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET and NEWTIME (include/uapi/linux/sched.h). */
const NAMESPACE_FLAGS = 0x7e02_0080;

const MOUNTS = "mounts are the world's, and a new one could uncover what a mask hides";
const KERNEL = "it changes or reads the kernel itself";
const CLOCK = "the clock is the machine's";
const KEYS = "keyrings are not namespaced";
const CAPABILITIES =
  "a nested user namespace gives capabilities, and with them the kernel's least tested code";

export const DENIED: readonly SeccompRule[] = [
  ...deny(
    ["mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen", "fsconfig"],
    MOUNTS,
  ),
  ...deny(["fsmount", "fspick", "mount_setattr", "open_tree_attr"], MOUNTS),
  { call: "unshare", action: "EPERM", reason: CAPABILITIES, inLogMode: NESTED },
  ...deny(["setns"], CAPABILITIES),
  {
    call: "clone",
    action: "EPERM",
    reason: CAPABILITIES,
    when: [{ argument: 0, anyOf: NAMESPACE_FLAGS }],
    inLogMode: NESTED,
  },
  {
    call: "clone3",
    action: "ENOSYS",
    reason: "its flags lie in memory, where no filter can look; C libraries fall back to clone",
    leaderNeeds: true,
    inLogMode: {
      reason:
        "it would hide a nested user namespace; every thread begins with it, and with clone when it is not there",
      told: false,
    },
  },
  ...deny(["bpf", "perf_event_open"], KERNEL),
  ...deny(["userfaultfd"], "it holds the kernel in the middle of a page fault, which exploits are built on"),
  ...["io_uring_setup", "io_uring_enter", "io_uring_register"].map(
    (call): SeccompRule => ({
      call,
      action: "ENOSYS",
      reason: "its requests are system calls that no filter sees",
      inLogMode: { reason: "its requests are system calls that would be neither seen nor told", told: true },
    }),
  ),
  ...deny(
    ["kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "syslog"],
    KERNEL,
  ),
  ...deny(["iopl", "ioperm", "modify_ldt"], "it reaches hardware or rarely tested processor state"),
  ...deny(
    ["reboot", "swapon", "swapoff", "acct", "quotactl", "quotactl_fd", "vhangup"],
    "the machine's, not the world's",
  ),
  ...deny(["settimeofday", "clock_settime", "clock_adjtime"], CLOCK),
  ...deny(["add_key", "request_key", "keyctl"], KEYS),
  ...deny(["open_by_handle_at", "fanotify_init"], "it reaches files past the world's mounts"),
  ...deny(["sethostname", "setdomainname"], "the world's name is not its commands' to change"),
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
      "of the address families only UNIX, INET, INET6 and NETLINK are needed; the others are kernel code nobody asked for",
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
    reason: "of netlink, NETLINK_ROUTE (0) and NETLINK_SOCK_DIAG (4) serve getaddrinfo and ss",
    when: [
      { argument: 0, isIn: [16] },
      { argument: 2, notIn: [0, 4] },
    ],
  },
  {
    call: "personality",
    action: "EPERM",
    reason:
      "READ_IMPLIES_EXEC and its like undo hardening; asking, PER_LINUX32, UNAME26 and ADDR_NO_RANDOMIZE are harmless",
    when: [{ argument: 0, notIn: [0, 0x8, 0x2_0000, 0x2_0008, 0x4_0000, 0xffff_ffff] }],
  },
];

/**
 * Where commands have cgroups their leaders start them by what is in the second table (CLONE_INTO_CGROUP): it is a short
 * filter of its own, which each command loads before its program. Elsewhere one filter has both.
 */
export const DENIED_TO_ALL: readonly SeccompRule[] = DENIED.filter(({ leaderNeeds }) => leaderNeeds !== true);
export const DENIED_TO_COMMANDS: readonly SeccompRule[] = DENIED.filter(
  ({ leaderNeeds }) => leaderNeeds === true,
);

function deny(calls: readonly string[], reason: string): readonly SeccompRule[] {
  return calls.map((call) => ({ call, action: "EPERM", reason }));
}
